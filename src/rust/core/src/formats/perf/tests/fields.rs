//! Tests the fields that perf prints before, after and between frames. The texts are shortened outputs of perf 6.1 and
//! examples of its authors.

use super::{FORMAT, profile, stacks};
use crate::formats::testing::read_with;

/// The names of the frames of each sample, and the kinds of problems.
fn names(text: &str) -> (Vec<String>, Vec<&'static str>) {
    let (profile, problems) = profile(text);
    let name = |frame: &str| frame.split(' ').next().unwrap_or_default().to_owned();
    let samples = stacks(&profile).into_iter();
    let names = samples.map(|stack| stack.split(", ").map(name).collect::<Vec<_>>().join(" "));
    (names.collect(), problems)
}

#[test]
fn lines_after_frames_are_no_frames() {
    let frames = "t 24 7.5:         50 page-faults:     7f85a9a0f010 [unknown] (//anon)\n\
                  \t            1153 inner+0x1a (/bin/t)\n\
                  \t            11b1 main+0x32 (/bin/t)\n";
    for after in [
        "",
        "               0",
        " 4K 4K",
        " ABI:2    AX:0x1    BX:0x28 ",
        " ABI:2    SP:0x7ffc91f18638 ",
        " insn: 88 02",
        " ilen: 2 insn: 88 02",
        "  0x7f0/0x7f8/P/-/-/0  0x8f0/0x8f8/M/-/-/0 ",
        " main+0x1/inner+0x0/P/-/-/0 ",
        " =>     7f85a9a0f010 g+0x0 (/bin/t)",
        "\t IPC: 0.50 (1/2) ",
        "\n\tmain:\n\t0000556090e40153\tmov %al, (%rdx)\n\t0000556090e40155\tjmp 0x10\t# PRED 1 cycles\n",
        "\tcannot resolve 1153-1160\n",
    ] {
        let text = format!("{frames}{after}\n").repeat(2);
        let (names, problems) = names(&text);
        assert_eq!(names, ["inner main"; 2], "{after}");
        assert!(problems.is_empty(), "{after} {problems:?}");
    }
}

#[test]
fn a_flat_sample_may_have_a_source_line_code_and_instructions() {
    let text = "t 24 7.5: 50 page-faults:      55a0355b7153 inner+0x1a (/bin/t)\n  t.c:3\n\
                |3        long inner(char *p)\n\
                t 24 7.6: 50 page-faults:      55a0355b7153 inner+0x1a (/bin/t)\n\
                \tinner:\n\t0000556090e40153\tmov %al, (%rdx)\n\n\
                t 24 7.7: 50 page-faults:      55a0355b7153 inner+0x1a (/bin/t)\n";
    let start = text.find("t 24 7.6").unwrap();
    let code = text.replacen("  t.c:3\n", "", 1);
    for text in [text, &text[start..], &code] {
        assert!((super::FORMAT.recognises)(text.as_bytes()), "{text}");
    }
    let (profile, problems) = profile(text);
    assert!(problems.is_empty(), "{problems:?}");
    let frame = "inner native 55a0355b7153@/bin/t";
    let with_line = "inner native 55a0355b7153@/bin/t t.c:3";
    assert_eq!(stacks(&profile), [with_line, frame, frame]);
}

#[test]
fn an_address_of_data_is_not_an_empty_call_graph() {
    let text = "t 24 7.5: 1 c:     7f85a9a0f010 [unknown] (//anon)\n\t 1153 f (m)\n\n\
                t 24 7.6: 1 c:     7f85a9a0f010 [unknown] (//anon)\n\n";
    assert_eq!(names(text).0, ["f", ""]);
}

#[test]
fn errors_and_losses_of_perf_are_reported() {
    let error = " instruction trace error type 1 time 4525.747173331 cpu 0 pid 215 tid 215 ip 0x7f85fc8da190 code 7: Overflow packet\n";
    let flat =
        "ls 215 [000] 4.5: 1 instructions:u:      7f85fc8da190 inner+0x10 (/lib/libc.so.6)\n";
    let graph = "ls 215 4.5: 1 c: \n\t    7f0 inner+0x1 (m)\n\n";
    let lost = "ls 215 4.6: PERF_RECORD_LOST lost 5\n";
    for (text, problem) in [
        (format!("{flat}{error}{flat}"), "trace_error"),
        (format!("{graph}{error}{graph}"), "trace_error"),
        (format!("{graph}{}{graph}", &error[1..]), "trace_error"),
        (format!("{flat}{lost}{flat}"), "lost_records"),
        (
            format!("{flat}{}{flat}", lost.replace("lost 5", "SAMPLES lost 5")),
            "lost_records",
        ),
    ] {
        let (names, problems) = names(&text);
        assert_eq!(names, ["inner", "inner"], "{text}");
        assert_eq!(problems, [problem], "{text}");
    }
}

#[test]
fn call_chains_apart_from_their_samples_are_refused() {
    let sample = "pwd 1 121.1: 249113 cycles:\n\tffffffff845e6692 do_syscall_64+0x62 ([kernel.kallsyms])\n\t       b00000006 (cookie) ([unknown])\n\n";
    let chain = "pwd 1 121.2: DEFERRED CALLCHAIN [cookie: b00000006]\n\t    7f18fe337fa7 mprotect+0x7 (/lib/ld.so)\n\n";
    // Without the chain, which perf may have lost.
    let missing = (vec!["do_syscall_64".to_owned()], vec!["no_call_chain"]);
    assert_eq!(names(sample), missing);
    let error = read_with(&FORMAT, &[sample, chain].concat(), None).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("without `--no-merge-callchains`"),
        "{error}"
    );
}
