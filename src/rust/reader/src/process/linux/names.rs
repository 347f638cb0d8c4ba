//! The command line of a process, and the names of its program and script, which are all that profiles have of it: arguments
//! and code may contain secrets.

use super::folder::file_of;
use super::proc::Process;
use crate::memory::command_line;
use profile_core::error::Result;
use profile_core::limits::memory::owned;
use profile_core::text::decode;
use std::fs;
use std::os::unix::ffi::OsStringExt;

impl Process {
    /// The program and its arguments, each followed by a 0, except perhaps the last one.
    fn command_line(&self) -> Vec<u8> {
        fs::read(file_of(self.pid, "cmdline")).unwrap_or_default()
    }

    /// The program and its arguments, with blanks between them.
    pub fn command(&self) -> Result<String> {
        command_line::text(self.command_line())
    }

    /// The file name of its program: without its folder, and without arguments, which may contain secrets.
    pub fn program(&self) -> Result<Option<String>> {
        let name = match fs::read_link(file_of(self.pid, "exe")) {
            Ok(link) => {
                let path = link.into_os_string().into_vec();
                let path = path.strip_suffix(b" (deleted)").unwrap_or(&path);
                text_of(last_part(path))
            }
            // The kernel's short name of the program, for processes into which this one may not look.
            Err(_) => {
                let name = fs::read(file_of(self.pid, "comm")).unwrap_or_default();
                text_of(name.trim_ascii_end())
            }
        };
        Ok(Some(name?).filter(|name| !name.is_empty()))
    }

    /// The file name of the script that R runs, without its folder.
    pub fn script_name(&self) -> Result<Option<String>> {
        match script_in(&self.command_line()) {
            Some(script) => text_of(last_part(script)).map(Some),
            None => Ok(None),
        }
    }

    /// The script that R runs, `None` if it runs code from the command line or from its input.
    pub fn script(&self) -> Result<Option<String>> {
        match script_in(&self.command_line()) {
            Some(script) => text_of(script).map(Some),
            None => Ok(None),
        }
    }
}

/// What follows the last slash.
fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

fn text_of(bytes: &[u8]) -> Result<String> {
    owned(&decode(bytes)?.text)
}

/// The script in a command line of R: `--file=SCRIPT`, as Rscript passes it, or `-f SCRIPT`. What follows `--args` is for
/// the script.
fn script_in(command_line: &[u8]) -> Option<&[u8]> {
    let mut arguments = command_line.split(|byte| *byte == 0).skip(1);
    while let Some(argument) = arguments.next() {
        match argument {
            b"--args" => return None,
            b"-f" => return arguments.next().filter(|script| *script != b"-"),
            _ => {}
        }
        if let Some(script) = argument.strip_prefix(b"--file=") {
            return (script != b"-").then_some(script);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Entry, Scripted};
    use crate::record::source::{process_source, source};
    use crate::recorded::settings::{Clock, Settings};
    use crate::recorded::waits::WaitNames;
    use profile_core::model::{Profile, Source, SourceKind};
    use std::time::Duration;

    #[test]
    fn scripts_are_in_the_command_line() {
        let cases: [(&[u8], Option<&[u8]>); 8] = [
            (b"R\0--no-echo\0--file=a b.R\0--args\0x\0", Some(b"a b.R")),
            (b"R\0-f\0a.R", Some(b"a.R")),
            (b"R\0--args\0--file=a.R\0", None),
            (b"R\0--file=-\0", None),
            (b"R\0-f\0-\0", None),
            (b"R\0-e\0f()\0", None),
            (b"R\0-f", None),
            (b"", None),
        ];
        for (command_line, script) in cases {
            assert_eq!(script_in(command_line), script);
        }
    }

    const R: &str = "/usr/lib/R/bin/exec/R";

    /// Program, its short name, command line, and the expected names of program and script.
    type Case = (
        &'static str,
        &'static str,
        &'static str,
        Option<&'static str>,
        Option<&'static str>,
    );

    const CASES: [Case; 13] = [
        (
            R,
            "R",
            "/usr/lib/R/bin/exec/R --no-echo --file=/srv/PLANTED/app.R --args --token=PLANTED",
            Some("R"),
            Some("app.R"),
        ),
        (
            R,
            "R",
            "R -f PLANTED/app.R --restore --args PLANTED",
            Some("R"),
            Some("app.R"),
        ),
        (R, "R", "R --no-echo -e f('PLANTED')", Some("R"), None),
        (
            R,
            "R",
            "R --no-echo -e PLANTED --file=/a/b.R",
            Some("R"),
            Some("b.R"),
        ),
        (
            R,
            "R",
            "R --token=PLANTED --args --file=PLANTED.R",
            Some("R"),
            None,
        ),
        (
            R,
            "R",
            "R -e parallel:::.workRSOCK() --args MASTER=localhost PORT=11234 KEY=PLANTED",
            Some("R"),
            None,
        ),
        (
            R,
            "R",
            "R --no-echo --file=/tmp/Rtmp1/callr-scr-abc --args PLANTED",
            Some("R"),
            Some("callr-scr-abc"),
        ),
        (R, "R", "R --file=- PLANTED", Some("R"), None),
        (
            "/opt/my R/bin/R-devel (deleted)",
            "R-devel",
            "/PLANTED",
            Some("R-devel"),
            None,
        ),
        (
            "/usr/bin/python3.11",
            "python3",
            "python3 app.py --token=PLANTED",
            Some("python3.11"),
            None,
        ),
        // It has overwritten its arguments.
        (
            "/usr/sbin/httpd",
            "httpd",
            "httpd:PLANTED",
            Some("httpd"),
            None,
        ),
        // This process may not look into it.
        ("", "R", "R --token=PLANTED", Some("R"), None),
        ("", "", "R --token=PLANTED", None, None),
    ];

    fn settings(own: bool) -> Settings {
        Settings {
            interval: Duration::from_millis(10),
            duration: Duration::from_secs(1),
            clock: Clock::Cpu,
            children: true,
            pause: true,
            native: false,
            names: WaitNames::Short,
            own,
            positions: false,
        }
    }

    fn texts(profile: &Profile, source: &Source) -> Vec<(String, String)> {
        let text = |id| profile.strings.get(id).to_owned();
        let attributes = source.attributes.iter();
        attributes
            .map(|attribute| (text(attribute.key), text(attribute.value.text)))
            .collect()
    }

    #[test]
    fn profiles_have_names_and_no_arguments() {
        for (program, short_name, command, expected, script) in CASES {
            let system = Scripted::new("names");
            system.add(&Entry {
                pid: 7,
                command,
                program,
                short_name,
                variables: "TOKEN=PLANTED\0",
                ..Entry::default()
            });
            let process = Process::find(7).unwrap();
            for own in [false, true] {
                let mut profile = Profile::default();
                let recorded = source(&process, &settings(own), &mut profile).unwrap();
                let mut names = vec![("process.pid", "7")];
                if !own {
                    names.extend(expected.map(|name| ("process.executable.name", name)));
                    names.extend(script.map(|name| ("profile.process.script", name)));
                }
                let found = texts(&profile, &recorded);
                let found: Vec<_> = found.iter().map(|(k, v)| (&k[..], &v[..])).collect();
                assert_eq!(found, names, "{command}");
                assert!(!format!("{recorded:?}{:?}", profile.strings).contains("PLANTED"));
            }
            let mut profile = Profile::default();
            let kind = SourceKind::named("snapshot");
            let snapshot = process_source(&process, kind, &mut profile).unwrap();
            assert!(!format!("{snapshot:?}{:?}", texts(&profile, &snapshot)).contains("PLANTED"));
            // What `ps` shows remains visible in lists of processes.
            assert_eq!(process.command().unwrap(), command);
        }
    }
}
