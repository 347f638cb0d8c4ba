//! Reading R in the memory of a process that does not exist: the tests need neither R nor a second process, and
//! decide what changes while it is read. There is a file of tests for each file of the crate that reads.

mod fake;
mod fuzz;

mod reader {
    mod ahead;
    mod byte_code;
    mod calls;
    mod damage;
    mod innermost;
    mod names;
    mod places;
    mod stack;
    mod symbols;
    mod target;
}
