//! Stacks of frameworks, and what remains of them.

use super::*;
use crate::model::{Function, Location};

/// A frame `package:name file`, of which the package and the file may be missing. Of `-:name`, a process knows that it
/// belongs to no package.
fn location(profile: &mut Profile, text: &str) -> LocationId {
    let (name, file) = text.split_once(' ').unwrap_or((text, ""));
    let (package, name) = match name.split_once(':') {
        Some((package, name)) if !name.starts_with(':') && !name.contains('>') => {
            (Some(package), name)
        }
        _ => (None, name),
    };
    let mut string = |text| profile.strings.intern(text).unwrap();
    let mut function = Function::named(string(name), string(file));
    function.package_from = package.map(|_| string("process"));
    function.package = package.filter(|package| *package != "-").map(string);
    let function = Some(profile.functions.intern(function).unwrap());
    let location = Location {
        function,
        ..Location::default()
    };
    profile.locations.push(location).unwrap()
}

/// The frames that are shown of a stack, which begins with the outermost one, and the innermost units.
fn shown(stack: &[&str]) -> (Vec<String>, Vec<(&'static str, String)>) {
    let mut profile = Profile::default();
    let ids: Vec<_> = stack
        .iter()
        .map(|text| location(&mut profile, text))
        .collect();
    let frameworks = Frameworks::new(&profile).unwrap();
    let mut position = Position::default();
    let mut left = Vec::new();
    let mut units: Vec<(&'static str, String)> = Vec::new();
    for (id, text) in ids.into_iter().zip(stack) {
        if frameworks.shows(id, &mut position) {
            left.push(text.to_string());
        }
        if let Some(unit) = frameworks.unit(id) {
            units.retain(|(key, _)| *key != unit.key);
            units.push((unit.key, unit.value.clone()));
        }
    }
    (left, units)
}

#[track_caller]
fn check(stack: &str, left: &str) {
    let stack: Vec<_> = stack.split(", ").collect();
    assert_eq!(shown(&stack).0.join(", "), left);
}

#[test]
fn functions_that_run_others_are_hidden() {
    check(
        "f, base:lapply, FUN, base:tryCatch, tryCatchList, g, base::do.call, h",
        "f, g, h",
    );
    // What has a source file is the user's.
    check("f, lapply, FUN a.R, sort", "f, FUN a.R, sort");
    // The text that R makes of a function of a package is no source file.
    check("f, lapply <base::lapply>, FUN <base::lapply>, g", "f, g");
    // A function of another package, or a name that needs a caller.
    check(
        "own:tryCatch, own:eval, do, f",
        "own:tryCatch, own:eval, do, f",
    );
    check("f, Reduce, f, g", "f, g");
    check("Reduce, f a.R, g", "f a.R, g");
    // A method for a class of S7 is no function of a package `print.own`.
    check(
        "evaluate::evaluate, print.own::thing, f a.R",
        "evaluate::evaluate, f a.R",
    );
    check(
        "evaluate::evaluate, own::thing, f a.R",
        "evaluate::evaluate, own::thing, f a.R",
    );
}

#[test]
fn shiny_marks_its_own_frames() {
    let start = "shiny:runApp, ..stacktraceoff.., captureStackTraces, promises::with_promise_domain, \
        domain$wrapSync, shiny:flushReact, ctx$run, contextFunc, <observer:output$plot>, hybrid_chain, do, tryCatch, \
        shinyCallingHandlers, func, orig, ..stacktraceon.., output$plot, renderFunc, shiny:hybrid_chain, do, force, \
        drawReactive, ..stacktraceoff.., self$.updateValue, ..stacktraceon.., <reactive:plotObj>, hybrid_chain, do, \
        force, func, ..stacktraceon.., ";
    for (rest, left) in [
        ("renderPlot, slow", ", renderPlot, slow"),
        ("f, do, func", ", f, do, func"),
    ] {
        check(
            &format!("{start}{rest}"),
            &format!("shiny:runApp, output$plot{left}"),
        );
    }
    let start: Vec<_> = start.split(", ").collect();
    assert_eq!(shown(&start).1, [("shiny.reactive", "output$plot".into())]);
    let inner = ["<observer:output$a>", "f", "<reactive:data>", "g"];
    assert_eq!(
        shown(&inner).1,
        [("shiny.reactive", "<reactive:data>".into())]
    );
    // Code of the app is shown, also if Shiny has not marked it, and so is what it calls.
    check(
        "runApp, ..stacktraceoff.., serviceApp, handler, server app.R, lm, model.frame",
        "runApp, server app.R, lm, model.frame",
    );
    check(
        "runApp, ..stacktraceoff.., serviceApp, base:lapply, compiler:cmpfun, other:f, base:sort",
        "runApp, other:f, base:sort",
    );
    check(
        "runApp, ..stacktraceoff.., serviceApp, shiny:flushReact",
        "runApp",
    );
}

/// What promises calls before the user's callback.
const CALLBACK: &str = "shiny:runApp, ..stacktraceoff.., service, run_now, execCallbacks, <Anonymous>, resolve, \
    private$doResolve, withVisible, onFulfilled, <Anonymous>, reenter_promise_domain, force, callback, \
    withCallingHandlers, onFulfilled, <Anonymous>, contextFunc, func, onFulfilled, withCallingHandlers, onFulfilled, \
    with_active_span, <Anonymous>, onFulfilled";

#[test]
fn callbacks_of_promises_are_shown_without_their_domains() {
    check(
        &format!("{CALLBACK}, slow, sort"),
        "shiny:runApp, slow, sort",
    );
    for users in ["onFulfilled app.R", "-:onFulfilled"] {
        check(
            &format!("{CALLBACK}, {users}, slow"),
            &format!("shiny:runApp, {users}, slow"),
        );
    }
    // A process knows the package of each domain.
    check(
        "f, <reactive:a>, promises:with_promise_domain, shiny:domain$wrapSync, base:force, -:slow",
        "f, <reactive:a>, -:slow",
    );
    // A function of the user that only has this name.
    check("f, onFulfilled, slow", "f, onFulfilled, slow");
    check(
        "f, base:withCallingHandlers, onFulfilled, slow",
        "f, onFulfilled, slow",
    );
}

#[test]
fn observers_have_names_as_far_as_shiny_gives_them() {
    let unit = |stack: &[&str]| shown(stack).1;
    let named = |name: &str| [("shiny.reactive", name.to_owned())];
    assert_eq!(unit(&["<observer>", "observe app.R"]), named("<observer>"));
    assert_eq!(
        unit(&["<observer> app.R", "observe app.R"]),
        named("<observer>")
    );
    assert_eq!(unit(&["<reactive>", "f"]), named("<reactive>"));
    let bound = |name: &str| unit(&[name])[0].1.clone();
    assert_eq!(
        bound("bindEvent(observe({\n\tsave(f({x}),1)\n}),input$go)"),
        "<observer:bindEvent(input$go)>"
    );
    assert_eq!(
        bound("bindEvent(observe(save()),input$go)"),
        "<observer:bindEvent(observe(save()),input$go)>"
    );
    assert_eq!(unit(&["bindEvent", "f"]), []);
    check(
        "runApp, ..stacktraceoff.., contextFunc, bindEvent(observe({f()}),input$n), hybrid_chain, do, func, isolate, \
            ..stacktraceon.., valueFunc, ..stacktraceon.., <observer>, observe app.R, slow",
        "runApp, bindEvent(observe({f()}),input$n), observe app.R, slow",
    );
}

#[test]
fn requests_of_plumber2_begin_with_the_handler() {
    let start = "plumber2::api_run, api$ignite, super$ignite, private$run, private$run_blocking_server, service, \
        run_now, execCallbacks, <Anonymous>, rookCall, compute, func, private$p_trigger, <Anonymous>, lapply, FUN, \
        SAFE_CALL, try_fetch, .External, tryCatch, tryCatchList, tryCatchOne, doTryCatch, withCallingHandlers, h";
    check(
        &format!(
            "{start}, self$dispatch, route$disp, handler, with_formatter, inject, .External2, handler, slow"
        ),
        "plumber2::api_run, handler, slow",
    );
    // A handler of an event.
    check(&format!("{start}, slow"), "plumber2::api_run, slow");
    check("f, tryCatch, withCallingHandlers, h, slow", "f, h, slow");
}

#[test]
fn a_method_is_the_function_that_the_user_has_called() {
    check(
        "f, area, base:standardGeneric, area, .local, slow",
        "f, area, slow",
    );
    check(
        "f app.R, area app.R, standardGeneric, area, .local app.R, callNextMethod, eval, eval, .nextMethod, .local app.R, g",
        "f app.R, area app.R, .local app.R, callNextMethod, .local app.R, g",
    );
    check(
        "f, -:standardGeneric, -:area, g",
        "f, -:standardGeneric, -:area, g",
    );
    check(
        "f, area, S7::S7_dispatch, method(area, a) app.R",
        "f, area, method(area, a) app.R",
    );
    check(
        "f, dplyr:mutate, dplyr:mutate.data.frame, dplyr:mutate_cols, withCallingHandlers, mutate_col, \
            mask$eval_all_mutate, eval, .Call, slow",
        "f, dplyr:mutate, slow",
    );
    // Elsewhere, dplyr is shown as other packages are.
    check(
        "knitr::knit, process_file, evaluate, evaluate_call, knitr:knit_print, dplyr:arrange, g",
        "knitr::knit, dplyr:arrange, g",
    );
}

#[test]
fn documents_and_tests() {
    let evaluate = "evaluate, evaluate::evaluate, evaluate_call, timing_fn, handle, try, tryCatch, doTryCatch, \
        withCallingHandlers, withVisible, eval_with_user_handlers, eval, eval";
    check(
        &format!("knitr::knit, process_file, block_exec, in_dir, {evaluate}, slow, sort"),
        "knitr::knit, slow, sort",
    );
    // What prints the values is of another package.
    check(
        "knitr::knit, process_file, evaluate, evaluate_call, handle, value_fun, knitr:knit_print, ggplot2:print.ggplot, f",
        "knitr::knit, ggplot2:print.ggplot, f",
    );
    check(
        "testthat::test_dir, test_files, with_reporter, tryCatch, lapply, FUN, source_file, test_code, tryCatch, eval, \
            eval test-a.R, test_that, test_code, doTryCatch, eval, eval test-a.R, expect_equal, quasi_label, eval_bare, \
            .External2, slow",
        "testthat::test_dir, expect_equal, slow",
    );
    // In another process.
    check(
        "do.call, <Anonymous>, <Anonymous>, with_reporter, tryCatch, test_one_file, source_file, test_code, eval, \
            eval test-a.R, expect_error, expect_condition_matching_, quasi_capture, .capture, withCallingHandlers, \
            eval_bare, .External2, slow",
        "expect_error, slow",
    );
    check(
        "testthat::test_dir, test_files, source_file, test_code, eval test-a.R, expect_snapshot, expect_snapshot_, \
            with_is_snapshotting, verify_exec, evaluate::evaluate, doWithOneRestart, with_handlers, eval, slow",
        "testthat::test_dir, expect_snapshot, slow",
    );
}

#[test]
fn methods_that_print_are_code_of_the_user() {
    let prints = "evaluate::evaluate, withRestarts, doWithOneRestart, with_handlers, eval, eval, withCallingHandlers, \
        watcher$print_value, withVisible, handle_value, handler$value";
    check(
        &format!("{prints}, evalq, evalq, print, print.own, slow"),
        "evaluate::evaluate, print, print.own, slow",
    );
    check(
        &format!("knitr::knit, {prints}, fun, withVisible, knit_print, knit_print.own, slow"),
        "knitr::knit, knit_print.own, slow",
    );
    check(
        &format!(
            "knitr::knit, {prints}, fun, withVisible, knit_print, knit_print.default, normal_print, print, f"
        ),
        "knitr::knit, print, f",
    );
    check("f, knit_print, g", "f, knit_print, g");
}

#[test]
fn the_code_that_callr_runs_begins_with_the_function_of_the_user() {
    let caught = "base:doTryCatch, base:tryCatchList, base:tryCatchOne, base:doTryCatch";
    check(
        &format!(
            "{caught}, base:withCallingHandlers, base:saveRDS, base:do.call, base::<Anonymous>, -:slow"
        ),
        "-:slow",
    );
    // Without packages, as R's profiler records it.
    check(
        &format!("{caught}, withCallingHandlers, saveRDS, do.call, <Anonymous>, <Anonymous>, slow"),
        "slow",
    );
    // Code of users that saves an object.
    check("f, doTryCatch, withCallingHandlers, saveRDS", "f, saveRDS");
    check(
        "f, doTryCatch, tryCatchList, tryCatchOne, doTryCatch, saveRDS",
        "f, saveRDS",
    );
}

#[test]
fn functions_of_users_with_such_names_are_shown() {
    let rules = || Rules::get().unwrap().rules.iter();
    let is_of_r = |rule: &&Rule| rule.package == BASE || rule.package == ANY;
    let names = rules().filter(|rule| {
        rule.name.end.is_none()
            && rule.callers[0].is_none()
            && !rules().filter(is_of_r).any(|other| other.name == rule.name)
    });
    for name in names.map(|rule| rule.name.start) {
        let stack = format!("main app.R, {name} app.R, f app.R, g");
        check(&stack, &stack);
    }
    // Names that users have as well, without source files.
    for name in [
        "run",
        "render",
        "knit",
        "evaluate",
        "service",
        "future",
        "test_file",
        "it",
        "describe",
        "map_",
        "outer",
        "func",
        "resolve",
        "callback",
        "value",
        "saveRDS",
        "do",
        "source_file",
        "workLoop",
        "output$write",
        // Internal functions of promises, Shiny, plumber2, testthat and dplyr.
        "callback",
        "contextFunc",
        "isolate",
        "h",
        "handler",
        "impl",
        "inject",
        "mutate_cols",
        "verify_exec",
        "with_reporter",
        "send",
        "daemon",
        "user",
        "instance",
        "iterator",
        "is_exhausted",
        "as_iterator",
        "then",
        "resolved",
        "value.list",
        "e$fun",
        "serialize",
        "...future.FUN",
        "...furrr_fn",
    ] {
        let stack = format!("main, {name}, f, g");
        check(&stack, &stack);
        assert_eq!(shown(&stack.split(", ").collect::<Vec<_>>()).1, []);
    }
    check("main, lapply, FUN, f, g", "main, f, g");
    check("main, lapply, -:FUN, -:with, g", "main, -:FUN, -:with, g");
    check(
        "shiny:runApp, ..stacktraceoff.., shiny:flushReact, on_end, -:run, lm",
        "shiny:runApp, -:run, lm",
    );
    check(
        "main, base::withCallingHandlers, base::saveRDS",
        "main, base::saveRDS",
    );
    // Callbacks of users in services.
    check(
        "httpuv::runServer, service, run_now, execCallbacks, rookCall, compute, func, my_handler, slow",
        "httpuv::runServer, service, my_handler, slow",
    );
}

#[test]
fn workers_show_the_code_that_they_run() {
    let caught = "base:tryCatch, base:tryCatchList, base:tryCatchOne, base:doTryCatch";
    check(
        &format!(
            "parallel::workRSOCK, workLoop, workCommand, {caught}, do.call, -:<Anonymous>, evalFutureInternal, {caught}, \
                eval, eval, lapply, FUN, ...future.FUN, slow"
        ),
        "-:<Anonymous>, ...future.FUN, slow",
    );
    check(
        "crew::crew_worker, do.call, <Anonymous>, nanonext:send, eval_mirai, eval, crew::crew_eval, tryCatch, eval, \
            targets::target_run_worker, target_run, build_init, build_eval_fce17be7, eval, slow",
        "crew::crew_worker, slow",
    );
    check(
        "mirai::daemon, nanonext:send, mirai:eval_mirai, eval, do.call, <Anonymous> a.R, slow",
        "mirai::daemon, <Anonymous> a.R, slow",
    );
    check("-:daemon, send, f", "-:daemon, send, f");
    check("daemon, nanonext:send, f", "daemon, f");
    check(
        "do, nanonext:send, serialize",
        "do, nanonext:send, serialize",
    );
    check(
        "%dopar%, e$fun, mclapply, lapply, FUN, sendMaster, try, lapply, FUN, tryCatch, eval, eval, slow",
        "%dopar%, slow",
    );
    check("f, e$fun, g", "f, e$fun, g");
    check(
        "BiocParallel::bplapply, bplapply, .bpinit, bploop, .manager_send, .send_to, mcparallel, sendMaster, serialize, \
            eval, .bpworker_EXEC, do.call, .workerLapply_impl, do.call, <Anonymous>, FUN, -:FUN, slow",
        "BiocParallel::bplapply, -:FUN, slow",
    );
}

#[test]
fn a_future_that_is_an_argument_is_code_of_the_user() {
    check(
        "value, f, future::future, run, run.Future, launchFuture, evalFuture, evalFutureInternal, eval, eval, g, h",
        "value, f, future::future, g, h",
    );
    let waits = "future:value.list, future:resolved, future:resolved.ClusterFuture, parallelly:connectionId";
    check(&format!("f, future::value, {waits}"), "f, future::value");
    check(
        "value, value.list, resolved, f",
        "value, value.list, resolved, f",
    );
    check(
        "furrr::future_map, furrr_map_template, f, g",
        "furrr::future_map, f, g",
    );
    check(
        "furrr::future_map, furrr_map_template, furrr_template, future::future, run, eval, do.call, <Anonymous>, map_, \
            with_indexed_errors, <Anonymous>, .f, ...furrr_fn, slow",
        "furrr::future_map, ...furrr_fn, slow",
    );
}

#[test]
fn generators_show_the_code_of_their_steps() {
    let steps = "evalq, evalq, base::evalq, base::evalq";
    let user = "user, <<-, env_poke, eval_bare, .External2";
    check(
        &format!(
            "f, coro::loop, eval_bare, .External2, <Anonymous>, is_exhausted, <<-, env_poke, iterator, {steps}, {user}, slow"
        ),
        "f, coro::loop, slow",
    );
    check(
        "f, coro::loop, eval_bare, .External2, g, slow",
        "f, coro::loop, g, slow",
    );
    check(
        &format!("f, coro::is_exhausted, numbers, {steps}, {user}, slow"),
        "f, coro::is_exhausted, numbers, slow",
    );
    check(
        &format!(
            "task, local, coro:instance, {steps}, then, promises::then, as_promise, {user}, f"
        ),
        "task, f",
    );
    check(
        &format!("numbers, {steps}, with_try_catch, inject, tryCatch, {user}, f"),
        "numbers, f",
    );
    check(
        "local, eval.parent, eval, eval, eval, eval, instance, user, then, f",
        "instance, user, then, f",
    );
    check(
        "evalq, evalq, user, is_exhausted, f",
        "user, is_exhausted, f",
    );
    check(&format!("{steps}, -:user, f"), "-:user, f");
}

/// A stack in which a rule applies, of which the last frame is called by that of the rule. It begins with a framework,
/// if the rule says that it ends.
fn stack_of(rule: &Rule, frame: &str) -> Vec<String> {
    let begins = (rule.action == Action::Ends).then_some("shiny:..stacktraceoff..");
    let callers = rule.callers.iter().rev().flatten().copied();
    let frames = begins.into_iter().chain(callers).chain([frame, "called"]);
    frames.map(str::to_owned).collect()
}

/// The rules of functions with one name, and this name with the package if the rule needs that.
fn rules_with_names() -> impl Iterator<Item = (&'static Rule, String)> {
    let rules = Rules::get().unwrap().rules.iter();
    let is_of_frames = |rule: &&Rule| !matches!(rule.action, Action::Label(_) | Action::Place(_));
    let rules = rules
        .filter(|rule| rule.name.end.is_none())
        .filter(is_of_frames);
    rules.map(|rule| match (rule.is_certain, rule.name.start) {
        (true, name) => (rule, format!("{}:{name}", rule.package)),
        (false, name) => (rule, name.to_owned()),
    })
}

#[test]
fn each_rule_has_an_effect() {
    for (rule, frame) in rules_with_names() {
        let stack = stack_of(rule, &frame);
        let stack: Vec<_> = stack.iter().map(String::as_str).collect();
        let (left, _) = shown(&stack);
        let is_shown = |name: &str| left.contains(&name.to_owned());
        match rule.action {
            // Callers may have the same name.
            Action::Hide => assert!(
                left.iter().filter(|left| **left == frame).count()
                    < stack.iter().filter(|name| **name == frame).count(),
                "{rule:?}"
            ),
            Action::Begins => assert!(!is_shown("called"), "{rule:?}"),
            _ => assert!(is_shown("called"), "{rule:?}"),
        }
    }
}

#[test]
fn no_rule_hides_a_function_of_the_user() {
    let is_of_base = |name| {
        let mut rules = Rules::get().unwrap().rules.iter();
        rules.any(|rule| rule.package == BASE && rule.name.start == name)
    };
    for (rule, _) in rules_with_names() {
        let (own, in_file) = (
            format!("-:{}", rule.name.start),
            format!("{} a.R", rule.name.start),
        );
        for frame in [own, in_file] {
            // Functions of base that evaluate code have its file.
            if is_of_base(rule.name.start) && !frame.starts_with('-') {
                continue;
            }
            let stack = stack_of(rule, &frame);
            let (left, _) = shown(&stack.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(left.contains(&frame), "{rule:?}: {left:?}");
            let goes_on = left.contains(&"called".to_owned());
            assert!(rule.action != Action::Begins || goes_on, "{rule:?}");
        }
    }
}

#[test]
fn native_code_goes_with_its_caller() {
    let mut profile = Profile::default();
    let ids = ["f", "base:.Call", "g"].map(|text| location(&mut profile, text));
    let native = profile.frame_type(NATIVE).unwrap();
    let native = profile
        .locations
        .push(Location {
            frame_type: native,
            ..profile.locations.get(ids[2])
        })
        .unwrap();
    let frameworks = Frameworks::new(&profile).unwrap();
    let mut position = Position::default();
    let shows = [ids[0], native, ids[1], native].map(|id| frameworks.shows(id, &mut position));
    assert_eq!(shows, [true, true, false, false]);
}

#[test]
fn names_have_packages() {
    for (name, parts) in [
        ("a::f", (Some("a"), "f")),
        ("a:::f", (Some("a"), "f")),
        ("a.b::f", (Some("a.b"), "f")),
        ("f", (None, "f")),
        ("::f", (None, "::f")),
        ("a::", (None, "a::")),
        ("<observer:x>", (None, "<observer:x>")),
        ("a b::f", (None, "a b::f")),
    ] {
        assert_eq!(split_name(name), parts);
    }
}
