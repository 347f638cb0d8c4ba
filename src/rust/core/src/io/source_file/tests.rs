use super::*;

/// A directory of its own for each test, which is removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("profile-sources-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        // On Windows, resolved paths begin with `\\?\`, and profiles do not contain such names.
        let resolved = if cfg!(windows) {
            path
        } else {
            fs::canonicalize(path).unwrap()
        };
        Scratch(resolved)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn found(&self, name: &Path) -> Found {
        found(&[&self.0], name, false)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn found(directories: &[&Path], name: &Path, anywhere: bool) -> Found {
    let places = Places::new(directories, anywhere).unwrap();
    places.find(name, Wanted::Source).unwrap()
}

fn text(found: Found) -> Option<String> {
    match found {
        Found::Text { bytes, .. } => Some(String::from_utf8(bytes).unwrap()),
        _ => None,
    }
}

#[test]
fn names_of_servers_and_urls_are_refused_before_they_are_used() {
    for name in [
        "",
        "//server/share/a.R",
        "\\\\server\\share\\a.R",
        "/\\server/a.R",
        "\\/server/a.R",
        "\\\\?\\C:\\a.R",
        "\\\\.\\pipe\\a.R",
        "\\??\\UNC\\server\\share\\a.R",
        "http://a/b.R",
        "https://a/b.R",
        "file:///etc/a.R",
        "file:a.R",
        "ftp://a/b.R",
        "C:\\a.txt:b.R",
        "a.txt:b.R",
        "<text>",
        "a\nb.R",
        "a\u{0}b.R",
        "\u{7f}.R",
        "a?.R",
        "*.R",
    ] {
        assert!(!is_local(name), "{name:?}");
    }
    for name in [
        "a.R",
        "/a.R",
        "./a.R",
        "../a.R",
        "C:\\a.R",
        "C:/a.R",
        "c:a.R",
        "~/a.R",
        "a b/\u{e4}.R",
    ] {
        assert!(is_local(name), "{name:?}");
    }
    assert!(!is_local(&"a".repeat(LONGEST_NAME + 1)));
}

#[test]
fn devices_of_windows_are_known() {
    for name in [
        "CON", "con.R", "NUL.txt", "Com1.R", "lpt9", "AUX .R", "conin$",
    ] {
        assert!(is_device(name), "{name}");
    }
    for name in ["", "console.R", "com.R", "com10.R", "a.con", "auxiliary"] {
        assert!(!is_device(name), "{name}");
    }
}

#[test]
fn ends_of_names() {
    let ends = |name: &str| ends_of(Path::new(name)).unwrap();
    let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!(
        ends("/home/me/a.R"),
        paths(&["home/me/a.R", "me/a.R", "a.R"])
    );
    assert_eq!(ends("C:\\me\\..\\a.R"), paths(&["me/a.R", "a.R"]));
    assert_eq!(ends("./../"), paths(&[]));
}

#[test]
fn only_regular_files_with_a_source_extension_are_read() {
    let dir = Scratch::new("kinds");
    for name in ["a.R", "B.CPP", "c.RmD", "two.tar.R"] {
        let path = dir.file(name, name);
        assert_eq!(text(dir.found(&path)).as_deref(), Some(name));
        // The end of the name is searched in the folder.
        assert_eq!(text(dir.found(Path::new(name))).as_deref(), Some(name));
    }
    let (hidden, folder) = (dir.file(".x.R", ""), dir.file(".git/only.R", ""));
    for path in [
        dir.file("R", ""),
        dir.file("key.pem", ""),
        dir.file("a.R.bak", ""),
        dir.file("zero.R", "a\0b"),
        hidden,
        folder,
        dir.file("code.Rprofile", ""),
        dir.0.join("missing.R"),
    ] {
        assert_eq!(dir.found(&path), Found::Nothing, "{}", path.display());
    }
    fs::create_dir(dir.0.join("folder.R")).unwrap();
    assert_eq!(dir.found(&dir.0.join("folder.R")), Found::Nothing);
    let large = dir.file("large.R", "");
    File::create(&large).unwrap().set_len(LARGEST + 1).unwrap();
    assert_eq!(dir.found(&large), Found::Nothing);
}

#[test]
fn files_elsewhere_are_read_on_request_only() {
    let (inside, outside) = (Scratch::new("inside"), Scratch::new("outside"));
    let path = outside.file("a.R", "x");
    let hidden = outside.file(".b/a.R", "x");
    assert_eq!(inside.found(&path), Found::Elsewhere);
    assert_eq!(text(found(&[&inside.0], &path, true)).as_deref(), Some("x"));
    assert_eq!(found(&[&inside.0], &hidden, true), Found::Nothing);
    // Unless the user names that folder.
    let named = hidden.parent().unwrap();
    assert_eq!(text(found(&[named], &hidden, false)).as_deref(), Some("x"));
    let up = inside
        .0
        .join("..")
        .join(outside.0.file_name().unwrap())
        .join("a.R");
    assert_eq!(inside.found(&up), Found::Elsewhere);
    // A file of that name in the folder that the user names is read instead.
    inside.file("a.R", "y");
    assert_eq!(text(inside.found(&path)).as_deref(), Some("y"));
}

#[test]
fn a_description_is_no_source() {
    let dir = Scratch::new("description");
    let path = dir.file("DESCRIPTION", "Package: a");
    assert_eq!(dir.found(&path), Found::Nothing);
    let places = Places {
        directories: &[],
        roots: vec![fs::canonicalize(&dir.0).unwrap()],
        anywhere: false,
    };
    let wanted = |path: &Path| text(places.find(path, Wanted::Description).unwrap());
    assert_eq!(wanted(&path).as_deref(), Some("Package: a"));
    assert_eq!(wanted(&dir.file("a.R", "")), None);
}

#[cfg(unix)]
#[test]
fn links_are_judged_by_where_they_lead() {
    use std::os::unix::fs::symlink;
    let (inside, outside) = (Scratch::new("links"), Scratch::new("targets"));
    let link = |target: &Path, name: &str| {
        symlink(target, inside.0.join(name)).unwrap();
        inside.0.join(name)
    };
    let secret = outside.file("secret", "x");
    assert_eq!(inside.found(&link(&secret, "secret.R")), Found::Nothing);
    assert_eq!(
        found(&[&inside.0], &inside.0.join("secret.R"), true),
        Found::Nothing
    );
    outside.file("a.R", "x");
    assert_eq!(
        inside.found(&link(&outside.0.join("a.R"), "a.R")),
        Found::Elsewhere
    );
    link(&outside.0, "folder");
    assert_eq!(inside.found(&inside.0.join("folder/a.R")), Found::Elsewhere);
    let hidden = inside.file(".hidden.R", "x");
    assert_eq!(inside.found(&link(&hidden, "shown.R")), Found::Nothing);
    assert_eq!(
        inside.found(&link(Path::new("loop.R"), "loop.R")),
        Found::Nothing
    );
    assert_eq!(
        inside.found(&link(Path::new("/dev/zero"), "zero.R")),
        Found::Nothing
    );
    let own = inside.file("own.R", "mine");
    assert_eq!(
        text(inside.found(&link(&own, "alias"))).as_deref(),
        Some("mine")
    );
}

#[cfg(unix)]
#[test]
fn another_file_of_the_same_name_is_not_read() {
    let dir = Scratch::new("replaced");
    let path = dir.file("a.R", "judged");
    let about = fs::symlink_metadata(&path).unwrap();
    assert_eq!(
        text(read(&path, &about).unwrap().unwrap()).as_deref(),
        Some("judged")
    );
    fs::rename(dir.file("b.R", "other"), &path).unwrap();
    assert_eq!(read(&path, &about).unwrap(), None);
}
