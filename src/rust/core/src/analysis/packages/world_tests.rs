//! Which packages functions get, in small worlds of environments.

use super::assign::{Added, assign_packages};
use super::environments::{Bindings, CodeTable, Environments, GenericTable, Tables};
use crate::model::{Profile, Source};

/// What environments bind. A number is the position of a package in `packages`, counted from 1; the first is the global
/// environment.
#[derive(Default)]
struct World {
    names: Vec<&'static str>,
    packages: Vec<&'static str>,
    own: Vec<Vec<(&'static str, i32)>>,
    imports: Vec<Vec<(&'static str, i32)>>,
    methods: Vec<Vec<(&'static str, i32)>>,
    /// Of what is attached.
    attached: Vec<(&'static str, i32)>,
    code: Vec<Code>,
    generics: Vec<(i32, &'static str, Vec<i32>)>,
}

struct Code {
    home: i32,
    name: &'static str,
    locals: Vec<&'static str>,
    arguments: Vec<&'static str>,
    mentions: Vec<&'static str>,
    dispatches: bool,
}

/// The global environment, base, and the packages `a` and `b`: each of the last three has functions of its own, and one
/// named `order`. `b` imports `helper` of `a`.
fn world() -> World {
    let base = [
        "lapply",
        "tryCatch",
        "print",
        "standardGeneric",
        "order",
        "sort",
        "[",
    ];
    World {
        packages: vec!["", "base", "a", "b"],
        own: vec![
            vec![],
            base.map(|name| (name, 2)).to_vec(),
            vec![("run_a", 3), ("order", 3), ("helper", 3), ("gen", 3)],
            vec![("run_b", 4), ("order", 4), ("only_b", 4)],
        ],
        imports: vec![vec![], vec![], vec![], vec![("helper", 3)]],
        methods: vec![vec![], vec![("print.x", 4)], vec![], vec![]],
        ..World::default()
    }
}

impl World {
    fn number(&mut self, name: &'static str) -> i32 {
        let at = self.names.iter().position(|known| *known == name);
        at.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        }) as i32
            + 1
    }

    /// The packages of all frames of the stacks, which are written outermost first, and the rows that were added.
    fn packages_of(mut self, profile: &mut Profile) -> (Vec<Vec<String>>, Added) {
        let all: Vec<_> = [&self.own, &self.imports, &self.methods]
            .into_iter()
            .flatten()
            .cloned()
            .chain([self.attached.clone()])
            .collect();
        let bindings: Vec<(Vec<i32>, Vec<i32>)> = all
            .iter()
            .map(|bound| {
                let bound = bound.iter().map(|&(name, home)| (self.number(name), home));
                bound.unzip()
            })
            .collect();
        let numbers = |world: &mut World, names: &[&'static str]| -> Vec<i32> {
            names.iter().map(|name| world.number(name)).collect()
        };
        let code: Vec<_> = std::mem::take(&mut self.code)
            .into_iter()
            .map(|code| {
                let lists = [&code.locals, &code.arguments, &code.mentions]
                    .map(|names| numbers(&mut self, names));
                (code.home, self.number(code.name), lists, code.dispatches)
            })
            .collect();
        let generics: Vec<_> = std::mem::take(&mut self.generics)
            .into_iter()
            .map(|(home, name, homes)| (home, self.number(name), homes))
            .collect();
        let count = self.packages.len() as i32;
        let table = |first: i32| (0..count).map(|at| first + at).collect::<Vec<_>>();
        let [own, imports, methods] = [table(1), table(count + 1), table(2 * count + 1)];
        let tables = Tables {
            names: self.names.clone(),
            packages: self.packages.clone(),
            bindings: bindings
                .iter()
                .map(|(names, homes)| Bindings { names, homes })
                .collect(),
            own: &own,
            imports: &imports,
            methods: &methods,
            search: &[2, 1, 3 * count + 1, 2],
            start: 1,
            code: code
                .iter()
                .map(
                    |(environment, name, [locals, arguments, mentions], dispatches)| CodeTable {
                        environment: *environment,
                        name: *name,
                        locals,
                        arguments,
                        mentions,
                        dispatches: *dispatches,
                    },
                )
                .collect(),
            generics: generics
                .iter()
                .map(|(environment, name, homes)| GenericTable {
                    environment: *environment,
                    name: *name,
                    homes,
                })
                .collect(),
        };
        let environments = Environments::new(tables).unwrap();
        let added = assign_packages(profile, &environments, &|| false).unwrap();
        let text = |id| profile.strings.get(id).to_string();
        let stacks = profile.stacks.ids().map(|id| {
            let stack = profile.stacks.get(id).to_vec().unwrap();
            let functions = stack
                .iter()
                .rev()
                .map(|&id| profile.function_of(id).unwrap());
            functions
                .map(|function| {
                    let package = function.package.map_or("-".to_string(), text);
                    format!("{}:{package}", text(function.name))
                })
                .collect()
        });
        (stacks.collect(), added)
    }
}

/// A sample for each stack, written outermost first. A name in parentheses is code of a file; `base::f` has the package.
fn profile(stacks: &[&str]) -> Profile {
    let mut profile = Profile::default();
    let source = profile.add_source(Source::default()).unwrap();
    for stack in stacks {
        let mut frames = Vec::new();
        for text in stack.split(' ').rev() {
            let name = text.trim_matches(['(', ')']);
            let file = if name == text { "" } else { "file.R" };
            let file = profile.strings.intern(file).unwrap();
            let name = profile.strings.intern(name).unwrap();
            let mut function = crate::model::Function::named(name, file);
            if let Some((package, _)) = text.split_once("::") {
                function.package = Some(profile.strings.intern(package).unwrap());
                function.package_from = Some(profile.strings.intern("name").unwrap());
            }
            frames.push(profile.frame_of(function, 0).unwrap());
        }
        let stack = profile.stacks.push(&frames).unwrap();
        profile.samples.stack.push(stack);
        profile.samples.source.try_push(source).unwrap();
    }
    profile
}

fn packages(world: World, stacks: &[&str]) -> Vec<String> {
    let found = world.packages_of(&mut profile(stacks)).0;
    found.iter().map(|stack| stack.join(" ")).collect()
}

#[test]
fn a_name_is_looked_up_where_it_is_called() {
    let found = packages(
        world(),
        &[
            "a::run_a order",
            "b::run_b order",
            "b::run_b helper",
            "(mine) order",
            "order",
            "a::run_a only_b",
        ],
    );
    assert_eq!(
        found,
        [
            "a::run_a:a order:a",
            "b::run_b:b order:b",
            "b::run_b:b helper:a",
            "mine:- order:base",
            "order:base",
            // Not visible from there.
            "a::run_a:a only_b:-",
        ]
    );
    // From the global environment on, what is attached hides base.
    let attached = || World {
        attached: vec![("order", 4)],
        ..world()
    };
    let stacks = ["(mine) order", "sort order", "a::run_a order"];
    let expected = [
        "mine:- order:b",
        "sort:base order:base",
        "a::run_a:a order:a",
    ];
    assert_eq!(packages(attached(), &stacks), expected);
    // The user's function hides all of them, for code of the user.
    let mut own = attached();
    own.own[0].push(("order", 1));
    let expected = [
        "mine:- order:-",
        "sort:base order:base",
        "a::run_a:a order:a",
    ];
    assert_eq!(packages(own, &stacks), expected);
    // What is bound to something that cannot be read.
    let mut unread = attached();
    unread.own[0].push(("order", 0));
    assert_eq!(packages(unread, &stacks)[0], "mine:- order:-");
}

#[test]
fn a_function_whose_callers_disagree_becomes_several() {
    let mut profile = profile(&[
        "a::run_a order",
        "b::run_b order",
        "a::run_a order FUN order",
        "sort sort",
    ]);
    let stacks: Vec<_> = profile.samples.stack.clone();
    let (functions, locations) = (profile.functions.len(), profile.locations.len());
    let (found, added) = world().packages_of(&mut profile);
    assert_eq!(found[0], ["a::run_a:a", "order:a"]);
    assert_eq!(found[1], ["b::run_b:b", "order:b"]);
    // Any of the environments of the profile may be that of the caller.
    assert_eq!(found[2], ["a::run_a:a", "order:a", "FUN:-", "order:-"]);
    assert_eq!(found[3], ["sort:base", "sort:base"]);
    assert_eq!(added.functions.len(), 2);
    assert_eq!(added.locations.len(), 2);
    assert_eq!(profile.functions.len(), functions + 2);
    assert_eq!(profile.locations.len(), locations + 2);
    // Samples keep their stacks.
    assert_eq!(profile.samples.stack, stacks);
    // A second time nothing changes.
    let (again, added) = world().packages_of(&mut profile);
    assert_eq!(again, found);
    assert!(added.functions.is_empty() && added.locations.is_empty());
}

#[test]
fn what_is_certain_without_the_caller_is_known() {
    let stacks = [
        "(mine) lapply FUN helper order",
        "(mine) lapply FUN sort order",
        "<Anonymous> order",
    ];
    let expected = [
        // Nobody of the profile sees `helper`.
        "mine:- lapply:base FUN:- helper:- order:base",
        "mine:- lapply:base FUN:- sort:base order:base",
        "<Anonymous>:- order:base",
    ];
    assert_eq!(packages(world(), &stacks), expected);
    // Now `a` is a part of the profile, also of the stacks before.
    let stacks = [stacks[0], stacks[2], "a::run_a"];
    let expected = [
        "mine:- lapply:base FUN:- helper:a order:a",
        "<Anonymous>:- order:-",
        "a::run_a:a",
    ];
    assert_eq!(packages(world(), &stacks), expected);
}

#[test]
fn arguments_are_evaluated_by_functions_that_do_not_mention_them() {
    let code = |home, name, mentions| Code {
        home,
        name,
        locals: vec![],
        arguments: vec![],
        mentions,
        dispatches: false,
    };
    let silent = || World {
        code: vec![code(2, "tryCatch", vec![]), code(2, "sort", vec!["order"])],
        attached: vec![("order", 4)],
        ..world()
    };
    let stacks = [
        "a::run_a tryCatch order",
        "a::run_a sort order",
        "(mine) tryCatch order",
        "tryCatch order",
        "b::run_b tryCatch tryCatch helper",
    ];
    let expected = [
        "a::run_a:a tryCatch:base order:a",
        "a::run_a:a sort:base order:base",
        "mine:- tryCatch:base order:b",
        "tryCatch:base order:b",
        // Base does not see it.
        "b::run_b:b tryCatch:base tryCatch:base helper:a",
    ];
    assert_eq!(packages(silent(), &stacks), expected);
    // Nobody mentions it: a package may have constructed the call.
    let mut constructed = silent();
    constructed.code.push(code(3, "run_a", vec![]));
    assert_eq!(
        packages(constructed, &stacks[..1]),
        ["a::run_a:a tryCatch:base order:-"]
    );
}

#[test]
fn functions_in_functions_belong_to_the_same_package() {
    let mut nested = world();
    nested.code.push(Code {
        home: 2,
        name: "tryCatch",
        locals: vec!["inner", "further"],
        arguments: vec!["handler", "run"],
        mentions: vec![],
        dispatches: false,
    });
    nested.own[0].push(("run", 1));
    let stacks = [
        "b::run_b tryCatch inner further order",
        "b::run_b tryCatch handler",
        "(mine) tryCatch run sort",
        "b::run_b inner",
    ];
    let expected = [
        "b::run_b:b tryCatch:base inner:base further:base order:b",
        "b::run_b:b tryCatch:base handler:-",
        "mine:- tryCatch:base run:- sort:base",
        "b::run_b:b inner:-",
    ];
    assert_eq!(packages(nested, &stacks), expected);
}

#[test]
fn methods_are_found_as_r_dispatches_them() {
    let mut methods = world();
    methods.names.push(".local");
    methods.own[0].push(("print.mine", 1));
    methods.own[2].push(("print.x", 3));
    methods.generics.push((3, "gen", vec![4]));
    methods.generics.push((3, "helper", vec![3, 4]));
    let stacks = [
        // Where the generic was called, then what is registered for it.
        "a::run_a print print.x",
        "b::run_b print print.x",
        "(mine) print print.mine",
        "(mine) print.x",
        "a::gen standardGeneric a::gen .local",
        "b::run_b helper standardGeneric helper",
        "a::gen standardGeneric",
        "a::P$new initialize",
    ];
    let expected = [
        "a::run_a:a print:base print.x:a",
        "b::run_b:b print:base print.x:b",
        "mine:- print:base print.mine:-",
        "mine:- print.x:b",
        "a::gen:a standardGeneric:base a::gen:b .local:b",
        "b::run_b:b helper:a standardGeneric:base helper:-",
        "a::gen:a standardGeneric:base",
        "a::P$new:a initialize:-",
    ];
    assert_eq!(packages(methods, &stacks), expected);
}

#[test]
fn a_function_that_is_no_generic_calls_no_methods() {
    let world = |dispatches| {
        let mut world = world();
        world.own[0].push(("sort.int", 1));
        world.own[1].push(("sort.int", 2));
        world.code.push(Code {
            home: 2,
            name: "sort",
            locals: vec![],
            arguments: vec![],
            mentions: vec!["sort.int"],
            dispatches,
        });
        world
    };
    let stack = ["(mine) sort sort.int"];
    assert_eq!(
        packages(world(false), &stack),
        ["mine:- sort:base sort.int:base"]
    );
    assert_eq!(
        packages(world(true), &stack),
        ["mine:- sort:base sort.int:-"]
    );
}

#[test]
fn functions_without_a_stack_have_a_package_if_all_callers_find_it() {
    let mut lone = profile(&["sort"]);
    let none = lone.strings.intern("").unwrap();
    for name in ["lapply", "order", "helper"] {
        lone.named_function(name, none).unwrap();
    }
    world().packages_of(&mut lone);
    let packages = lone.functions.iter().map(|function| function.package);
    let packages: Vec<_> = packages
        .map(|id| id.map(|id| lone.strings.get(id)))
        .collect();
    assert_eq!(packages, [Some("base"), Some("base"), Some("base"), None]);
}
