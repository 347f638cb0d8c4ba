//! From addresses to functions: of libraries that are compiled here, against what
//! binutils say of the same files.
#![cfg(target_os = "linux")]

mod symbols {
    pub mod build;
    mod damage;
    mod debug;
    mod places;
    mod tables;
}
