//! The names of functions that are known by their definition.

use crate::fake::process::{At, FakeR, On};
use profile_runtime::contexts::{CLOSURE, Layout};
use profile_runtime::objects::{
    ATTRIBUTES, CDR, CLOSXP, DATA, ENVIRONMENT, ENVSXP, FRAME, HASHTAB, LENGTH, PROMSXP, STRSXP,
};

/// The frames of a call of a function, in the innermost of some calls.
fn frames_of(r: &FakeR, calls: &[(u64, u64)]) -> Vec<String> {
    let mut r = r.clone();
    for &(call, function) in calls {
        r.record(On::C, CLOSURE, call, function, At::Nowhere);
    }
    r.frames()
}

fn name(r: &FakeR, call: u64, function: u64) -> String {
    frames_of(r, &[(call, function)]).concat()
}

/// The call of a function that no name stands for.
fn anonymous(r: &mut FakeR) -> u64 {
    let inner = r.call_of("f");
    r.call(&[inner])
}

fn method_call(r: &mut FakeR, object: &str, member: &str) -> u64 {
    let (object, member) = (r.symbol(object), r.symbol(member));
    r.call_of_member("$", object, member)
}

fn texts(r: &mut FakeR, texts: &[&str]) -> u64 {
    let texts: Vec<u64> = texts.iter().map(|text| r.text(text.as_bytes())).collect();
    let data: Vec<u8> = texts.iter().flat_map(|text| text.to_le_bytes()).collect();
    r.vector(STRSXP, texts.len() as u64, &data)
}

fn with_attributes(r: &mut FakeR, object: u64, attributes: &[(&str, u64)]) {
    let attributes: Vec<_> = attributes
        .iter()
        .map(|&(name, value)| (r.symbol(name), value))
        .collect();
    r.attribute(object, &attributes);
}

/// Sets the variables of an environment without a hash table.
fn set_variables(r: &mut FakeR, environment: u64, variables: &[(&str, u64)]) {
    let variables: Vec<_> = variables
        .iter()
        .map(|&(name, value)| (r.symbol(name), value))
        .collect();
    let frame = r.pairlist(&variables);
    r.space.set(environment + FRAME as u64, frame);
}

/// An object of R6 of the class `Derived`, which inherits from `Counter`: its environment, and functions that the classes
/// define: `run` of both, `value`, an active binding of `Counter`, and `secret`, which is private.
struct Object {
    public: u64,
    run: u64,
    inherited: u64,
    value: u64,
    secret: u64,
    /// The environment of the object's own methods.
    methods: u64,
}

fn object(r: &mut FakeR) -> Object {
    let global = r.global;
    let [public, methods, inherited_methods, inherited, private] =
        [(); 5].map(|()| r.environment(global));
    let run = r.closure(methods);
    let secret = r.closure(methods);
    let [super_run, value] = [(); 2].map(|()| r.closure(inherited_methods));
    let nil = r.nil;
    let members: Vec<String> = (0..80).map(|number| format!("field_{number}")).collect();
    let mut variables: Vec<_> = members.iter().map(|name| (name.as_str(), nil)).collect();
    variables.extend([("run", run), ("value", value), (".__enclos_env__", methods)]);
    set_variables(r, public, &variables);
    set_variables(r, private, &[("secret", secret)]);
    set_variables(
        r,
        methods,
        &[("self", public), ("private", private), ("super", inherited)],
    );
    let enclosing = (".__enclos_env__", inherited_methods);
    set_variables(r, inherited, &[("run", super_run), enclosing]);
    set_variables(r, inherited_methods, &[("self", public)]);
    let class = texts(r, &["Derived", "Counter", "R6"]);
    with_attributes(r, public, &[("class", class)]);
    Object {
        public,
        run,
        inherited: super_run,
        value,
        secret,
        methods,
    }
}

#[test]
fn methods_and_active_bindings_of_r6_have_the_class_that_defines_them() {
    for layout in Layout::ALL {
        let mut r = FakeR::new(layout);
        let object = object(&mut r);
        let [x, this, own, other] = [
            ("x", "run"),
            ("self", "run"),
            ("super", "run"),
            ("private", "secret"),
        ]
        .map(|(object, member)| method_call(&mut r, object, member));
        let (active, common) = (anonymous(&mut r), r.call_of("FUN"));
        assert_eq!(name(&r, x, object.run), "Derived$run");
        assert_eq!(name(&r, this, object.run), "Derived$run");
        assert_eq!(name(&r, own, object.inherited), "Counter$run");
        assert_eq!(name(&r, other, object.secret), "Derived$secret");
        assert_eq!(name(&r, active, object.value), "Counter$value");
        // A method that is an argument.
        assert_eq!(name(&r, common, object.run), "Derived$run");
        // A function that is no member of the object, though it was defined in its environment.
        let helper = r.closure(object.methods);
        assert_eq!(name(&r, this, helper), "self$run");
        assert_eq!(name(&r, active, helper), "<Anonymous>");
    }
}

#[test]
fn what_looks_like_r6_in_part_keeps_its_name() {
    let mut r = FakeR::new(Layout::R_4_4);
    let object = object(&mut r);
    let call = method_call(&mut r, "self", "run");
    let without = |word: u64, value: u64| {
        let mut r = r.clone();
        r.space.set(word, value);
        name(&r, call, object.run)
    };
    assert_eq!(
        without(object.public + ATTRIBUTES as u64, r.nil),
        "self$run"
    );
    assert_eq!(without(object.public + FRAME as u64, r.nil), "self$run");
    assert_eq!(without(object.methods + FRAME as u64, r.nil), "self$run");
    assert_eq!(
        without(object.run + ENVIRONMENT as u64, r.global),
        "self$run"
    );
    assert_eq!(without(object.public + FRAME as u64, 8), "self$run");
    // Classes that inherit from themselves.
    let mut r = r.clone();
    let other = r.environment(object.methods);
    set_variables(
        &mut r,
        other,
        &[("self", object.public), ("super", object.public)],
    );
    set_variables(&mut r, object.public, &[(".__enclos_env__", other)]);
    assert_eq!(name(&r, call, object.run), "self$run");
}

#[test]
fn methods_of_reference_classes_have_the_class_that_defines_them() {
    let mut r = FakeR::new(Layout::R_4_4);
    let function = r.closure(r.global);
    let (class, method) = (r.string("Account"), r.string("deposit"));
    let srcref = r.nil;
    with_attributes(
        &mut r,
        function,
        &[
            ("srcref", srcref),
            ("name", method),
            ("refClassName", class),
        ],
    );
    let call = method_call(&mut r, "x", "deposit");
    assert_eq!(name(&r, call, function), "Account$deposit");
    let call = r.call_of("callSuper");
    assert_eq!(name(&r, call, function), "Account$deposit");
    with_attributes(&mut r, function, &[("name", method)]);
    assert_eq!(name(&r, call, function), "callSuper");
}

#[test]
fn methods_of_s7_have_their_generic_and_classes() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (global, nil) = (r.global, r.nil);
    let [function, generic, circle, any] = [(); 4].map(|()| r.closure(global));
    let (area, circle_name) = (r.string("area"), r.string("Circle"));
    let package = r.string("shapes");
    with_attributes(&mut r, generic, &[("name", area)]);
    with_attributes(
        &mut r,
        circle,
        &[("name", circle_name), ("package", package)],
    );
    let integer = r.string("integer");
    let base = r.list(&[integer]);
    let signature = r.list(&[circle, base, any]);
    let class = texts(&mut r, &["S7_method", "function", "S7_object"]);
    let attributes = [
        ("class", class),
        ("generic", generic),
        ("signature", signature),
    ];
    with_attributes(&mut r, function, &attributes);
    let call = anonymous(&mut r);
    assert_eq!(
        name(&r, call, function),
        "area(shapes::Circle, integer, ANY)"
    );
    r.space.set(signature + LENGTH as u64, 1);
    assert_eq!(name(&r, call, function), "area(shapes::Circle)");
    with_attributes(&mut r, function, &[("class", class), ("generic", nil)]);
    assert_eq!(name(&r, call, function), "<Anonymous>");
}

#[test]
fn methods_of_s3_generics_for_classes_of_s7_are_no_functions_of_a_package() {
    let mut r = FakeR::new(Layout::R_4_4);
    let function = r.closure(r.global);
    let call = r.call_of("print.ggplot2::ggplot");
    assert_eq!(name(&r, call, function), "print(ggplot2::ggplot)");
    let call = r.call_of("as.data.frame.shapes::Circle");
    assert_eq!(name(&r, call, function), "as.data.frame(shapes::Circle)");
    let (package, fread) = (r.symbol("data.table"), r.symbol("fread"));
    let call = r.call_of_member("::", package, fread);
    assert_eq!(name(&r, call, function), "data.table::fread");
}

#[test]
fn methods_of_ggproto_have_the_class_of_the_object() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (global, nil) = (r.global, r.nil);
    let (function, scope) = (r.closure(global), r.environment(global));
    let wrapper = r.closure(scope);
    let class = texts(&mut r, &["ggproto_method"]);
    with_attributes(&mut r, wrapper, &[("class", class)]);
    let object = r.environment(global);
    let class = texts(&mut r, &["GeomPoint", "Geom", "ggproto", "gg"]);
    with_attributes(&mut r, object, &[("class", class)]);
    let promises = [function, object].map(|value| r.cell(PROMSXP, [value, nil, nil]));
    set_variables(&mut r, scope, &[("self", promises[1]), ("f", promises[0])]);
    let outer = method_call(&mut r, "self", "draw_panel");
    for inner in ["f", "draw_panel"] {
        let inner = r.call_of(inner);
        let frames = frames_of(&r, &[(outer, wrapper), (inner, function)]);
        assert_eq!(frames, ["GeomPoint$draw_panel", "self$draw_panel"]);
    }
    // What the method calls is another function.
    let (inner, other) = (r.call_of("f"), r.closure(global));
    let frames = frames_of(&r, &[(outer, wrapper), (inner, other)]);
    assert_eq!(frames, ["f", "self$draw_panel"]);
    // An object without a class.
    let class = texts(&mut r, &["ggproto", "gg"]);
    with_attributes(&mut r, object, &[("class", class)]);
    let frames = frames_of(&r, &[(outer, wrapper), (inner, function)]);
    assert_eq!(frames, ["f", "self$draw_panel"]);
}

#[test]
fn functions_that_are_arguments_have_the_name_of_the_variable_that_has_them() {
    for layout in Layout::ALL {
        let mut r = FakeR::new(layout);
        let nil = r.nil;
        let (mine, scope) = (r.namespace("mine"), r.environment(r.global));
        let [in_package, promised, local, unnamed] =
            [mine, mine, scope, scope].map(|environment| r.closure(environment));
        let promise = r.cell(PROMSXP, [promised, nil, nil]);
        let variables = [("x", nil), ("clean", in_package), ("lazy", promise)];
        let table = r.hashed_environment(nil, &variables);
        let lists = r.space.word(table + HASHTAB as u64);
        r.space.set(mine + HASHTAB as u64, lists);
        set_variables(&mut r, scope, &[("step", local), ("fun", unnamed)]);
        let (common, bare) = (r.call_of("FUN"), anonymous(&mut r));
        let own = r.call_of("g");
        for call in [common, bare] {
            assert_eq!(name(&r, call, in_package), "clean");
            assert_eq!(name(&r, call, promised), "lazy");
            assert_eq!(name(&r, call, local), "step");
        }
        // A name that is as common says nothing, and the name of a call is kept.
        assert_eq!(name(&r, common, unnamed), "FUN");
        assert_eq!(name(&r, own, local), "g");
    }
}

#[test]
fn active_bindings_of_an_environment_have_their_name() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (scope, holder) = (r.environment(r.global), r.hashed_environment(r.global, &[]));
    let function = r.closure(scope);
    set_variables(&mut r, scope, &[("holder", holder)]);
    let filled = r.hashed_environment(r.global, &[("total", function)]);
    set_variables(&mut r, scope, &[("other", holder), ("filled", filled)]);
    let (active, common) = (anonymous(&mut r), r.call_of("FUN"));
    assert_eq!(name(&r, active, function), "total");
    assert_eq!(name(&r, common, function), "FUN");
}

#[test]
fn damaged_environments_are_survived() {
    let mut r = FakeR::new(Layout::R_4_4);
    let scope = r.environment(r.global);
    let function = r.closure(scope);
    set_variables(&mut r, scope, &[("a", function), ("b", scope)]);
    let call = r.call_of("FUN");
    assert_eq!(name(&r, call, function), "a");
    let first = r.space.word(scope + FRAME as u64);
    let second = r.space.word(first + CDR as u64);
    let other = r.closure(scope);
    for (address, word) in [
        // A list of variables without an end, and one that is not readable.
        (second + CDR as u64, second),
        (second + CDR as u64, u64::MAX - 7),
        (scope + FRAME as u64, 8),
        (scope, u64::from(CLOSXP.0)),
        (other + ENVIRONMENT as u64, 8),
    ] {
        let mut r = r.clone();
        r.space.set(address, word);
        assert_eq!(name(&r, call, other), "FUN");
    }
    let table = r.list(&[0; 3]);
    let hashed = r.cell(ENVSXP, [r.nil, r.global, table]);
    let inside = r.closure(hashed);
    for length in [0, 3, 1 << 31, u64::MAX] {
        r.space.set(table + LENGTH as u64, length);
        assert_eq!(name(&r, call, inside), "FUN");
    }
    r.space.set(table + LENGTH as u64, 3);
    r.space.set(table + DATA as u64, u64::MAX);
    assert_eq!(name(&r, call, inside), "FUN");
}
