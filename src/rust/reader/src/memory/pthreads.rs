//! The threads that glibc knows in a process: which function each of them began with, and its argument.
//!
//! glibc describes each thread in a `struct pthread`, and links all of them in two lists, of threads with a stack of glibc's
//! and of others. For debuggers, it exports where the lists and the fields are, as `_thread_db_*`: three numbers with 32
//! bits, of which the last one is the offset in bytes (glibc's `nptl_db/db_info.c` and `structs.def`, as used by
//! `libthread_db`). So nothing has to be known of its versions. The heads of the lists are in `_rtld_global` since glibc
//! 2.33; in older ones, and in other C libraries, no thread is found.
//!
//! The process may go on, so that the lists change meanwhile: then some threads are missing.

use super::symbols::Module;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::memory::{self, Memory, half_at};

/// More threads than are looked at.
const MOST: usize = 1 << 14;

/// A thread, and the function that it began with. The first thread of a process has none: 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pthread {
    pub id: i32,
    pub routine: u64,
    pub argument: u64,
}

/// The offsets of fields in the description of a thread, and the addresses of the heads of both lists.
struct Layout {
    list: u64,
    id: u64,
    routine: u64,
    heads: [u64; 2],
}

/// The threads of a process in which these files are mapped at these addresses.
pub fn pthreads(memory: &mut impl Memory, files: &[(String, u64)]) -> Result<Vec<Pthread>> {
    let mut found = Vec::new();
    let Some(layout) = Layout::find(memory, files)? else {
        return Ok(found);
    };
    for head in layout.heads {
        let mut at = memory::word(memory, head);
        while let Some(link) = at.filter(|&link| link != head && found.len() < MOST) {
            let start = link.wrapping_sub(layout.list);
            let id = memory::array(memory, start.wrapping_add(layout.id)).map(i32::from_le_bytes);
            // The argument follows the function.
            let routine = start.wrapping_add(layout.routine);
            let argument = memory::word(memory, routine.wrapping_add(8));
            let routine = memory::word(memory, routine);
            if let (Some(id), Some(routine), Some(argument)) = (id, routine, argument) {
                found.try_push(Pthread {
                    id,
                    routine,
                    argument,
                })?;
            }
            at = memory::word(memory, link);
        }
    }
    Ok(found)
}

impl Layout {
    fn find(memory: &mut impl Memory, files: &[(String, u64)]) -> Result<Option<Layout>> {
        let (mut globals, mut library) = (None, None);
        for (path, start) in files {
            let name = path.rsplit('/').next().unwrap_or_default();
            if globals.is_none() && name.starts_with("ld") {
                let module = Module::at(memory, *start)?;
                globals = module.and_then(|module| module.find(memory, "_rtld_global"));
            }
            // Until glibc 2.33, threads had a library of their own.
            if library.is_none()
                && ["libc.", "libc-", "libpthread"]
                    .iter()
                    .any(|l| name.starts_with(l))
            {
                let module = Module::at(memory, *start)?;
                library = module.filter(|module| offset(memory, module, "pthread_tid").is_some());
            }
        }
        let (Some(globals), Some(library)) = (globals, library) else {
            return Ok(None);
        };
        let mut field = |name| offset(memory, &library, name);
        let fields = [
            field("pthread_list"),
            field("pthread_tid"),
            field("pthread_start_routine"),
            field("rtld_global__dl_stack_used"),
            field("rtld_global__dl_stack_user"),
        ];
        let [Some(list), Some(id), Some(routine), Some(used), Some(user)] = fields else {
            return Ok(None);
        };
        Ok(Some(Layout {
            list,
            id,
            routine,
            heads: [used, user].map(|offset| globals.wrapping_add(offset)),
        }))
    }
}

/// The offset of a field.
fn offset(memory: &mut impl Memory, library: &Module, field: &str) -> Option<u64> {
    let name = profile_core::message!("_thread_db_{field}");
    let at = library.find(memory, &name)?;
    let numbers = memory::array::<12>(memory, at)?;
    Some(half_at(&numbers, 8).into())
}
