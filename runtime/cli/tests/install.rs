//! `longshore install`, and the command under the names that it makes.

#[path = "support/program.rs"]
mod program;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use program::write_program;

/// A folder with the command and a library beside it, as cargo builds them. Tests of the real
/// library are in C.
fn built(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("built")).unwrap();
    let command = fs::read(env!("CARGO_BIN_EXE_longshore")).unwrap();
    write_program(&folder.join("built/longshore"), &command);
    fs::write(folder.join("built/libmpi_abi.so"), "a library").unwrap();
    folder
}

fn run(program: PathBuf, words: &[&str]) -> Output {
    // A compiler that shows its words.
    Command::new(program).args(words).env("LONGSHORE_CC", "echo").output().unwrap()
}

fn text(output: &[u8]) -> &str {
    std::str::from_utf8(output).unwrap()
}

#[test]
fn install_lays_out_a_prefix_whose_commands_work() {
    let folder = built("install");
    let prefix = folder.join("a prefix");
    for _ in 0..2 {
        let done = run(folder.join("built/longshore"), &["install", prefix.to_str().unwrap()]);
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    let place = |name: &str| prefix.join(name);
    assert_eq!(fs::read(place("lib/libmpi_abi.so")).unwrap(), b"a library");
    assert!(fs::read_to_string(place("include/mpi.h")).unwrap().contains("MPI_Win_create("));
    assert!(fs::read_to_string(place("include/mpix.h")).unwrap().contains("MPIX_Type_print("));
    assert!(fs::read_to_string(place("lib/pkgconfig/longshore.pc")).unwrap().contains("-lmpi_abi"));
    let page = fs::read_to_string(place("share/man/man1/longshore-run.1")).unwrap();
    assert!(page.contains("longshore\\-run") && page.contains("watchdog"), "{page}");
    for completion in [
        "bash-completion/completions/longshore",
        "zsh/site-functions/_longshore",
        "fish/vendor_completions.d/longshore.fish",
    ] {
        let script = fs::read_to_string(place("share").join(completion)).unwrap();
        assert!(script.contains("watchdog"), "{completion}");
    }
    let fint = fs::read_to_string(place("include/mpix_fint.h")).unwrap();
    assert!(fint.contains("MPI_Fint MPI_Win_c2f(MPI_Win win)"), "{fint}");
    let suppressions = fs::read_to_string(place("share/longshore/valgrind.supp")).unwrap();
    // Entries of Longshore's own are about memory that it keeps. Wrong accesses are libfabric's.
    for entry in suppressions.split("\n{\n").skip(1) {
        let of_fabric = entry.contains("obj:*/libfabric.so*") || entry.contains("fun:xnet_*");
        assert!(of_fabric || entry.contains("Memcheck:Leak"), "{entry}");
    }
    assert!(suppressions.contains("obj:*/libfabric.so*"), "{suppressions}");
    for (name, word) in [
        ("mpicc", "showme"),
        ("mpicxx", "showme"),
        ("mpic++", "showme"),
        ("mpiexec", "watchdog"),
        ("mpirun", "watchdog"),
    ] {
        let page = fs::read_to_string(place(&format!("share/man/man1/{name}.1"))).unwrap();
        assert!(page.contains(word) && page.contains(&format!(".TH {name} ")), "{page}");
        for completion in [
            format!("bash-completion/completions/{name}"),
            format!("zsh/site-functions/_{name}"),
            format!("fish/vendor_completions.d/{name}.fish"),
        ] {
            let script = fs::read_to_string(place("share").join(&completion)).unwrap();
            assert!(script.contains(word), "{completion}");
        }
    }
    let mode = fs::metadata(place("bin/mpirun")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111);

    let compiled = run(place("bin/mpicc"), &["-O2", "a.c", "-o", "a"]);
    let include = place("include").display().to_string();
    let libraries = place("lib").display().to_string();
    let words =
        format!("-I{include} -O2 a.c -o a -L{libraries} -Wl,-rpath,{libraries} -lmpi_abi\n");
    assert_eq!(text(&compiled.stdout), words);
    let other = folder.join("other.so");
    fs::write(&other, "another library").unwrap();
    let words = ["install", prefix.to_str().unwrap(), "--library", other.to_str().unwrap()];
    assert!(run(folder.join("built/longshore"), &words).status.success());
    assert_eq!(fs::read(place("lib/libmpi_abi.so.1")).unwrap(), b"another library");
    let shown = run(place("bin/mpicc"), &["-show", "-c", "a.c"]);
    assert_eq!(text(&shown.stdout), format!("echo '-I{include}' -c a.c\n"));

    for asked in ["--help", "-help"] {
        let help = run(place("bin/mpicc"), &[asked]);
        for text_of_ours in ["mpicc [WORDS]", "LONGSHORE_CC, MPICH_CC or OMPI_CC", "--showme:link"]
        {
            assert!(text(&help.stdout).contains(text_of_ours), "{}", text(&help.stdout));
        }
        let help = run(place("bin/mpiexec"), &[asked]);
        for text_of_ours in ["mpiexec [OPTIONS]", "-ppn N", "--watchdog"] {
            assert!(text(&help.stdout).contains(text_of_ours), "{}", text(&help.stdout));
        }
    }
    let shown = run(place("bin/mpicc"), &["--showme:link"]);
    let words = format!("'-L{libraries}' '-Wl,-rpath,{libraries}' -lmpi_abi\n");
    assert_eq!(text(&shown.stdout), words);
    let shown = run(place("bin/mpicc"), &["--showme:nothing"]);
    assert_eq!(shown.status.code(), Some(1));
    assert!(text(&shown.stderr).contains("--showme:nothing: expected compile, link"));
    for (name, set) in [("MPICH_CC", "mpicc"), ("OMPI_CC", "mpicc"), ("OMPI_CXX", "mpicxx")] {
        let mut command = Command::new(place("bin").join(set));
        command.env_remove("LONGSHORE_CC").env(name, "echo with").arg("--version");
        let shown = command.output().unwrap();
        assert_eq!(text(&shown.stdout), format!("with -I{include} --version\n"), "{name}");
    }
    for name in ["mpifort", "mpif90", "mpif77"] {
        let refused = run(place("bin").join(name), &["a.f90"]);
        assert_eq!(refused.status.code(), Some(1), "{name}");
        let told = text(&refused.stderr);
        assert!(
            told.contains(name) && told.contains("bind(C)") && told.contains("mpicc"),
            "{told}"
        );
    }

    // The loader finds the library after the folders that the program's environment names.
    let show = ["-n", "1", "sh", "-c", "echo $LD_LIBRARY_PATH"];
    let only = format!("{libraries}/longshore");
    let names: Vec<_> = fs::read_dir(&only).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["libmpi_abi.so.1"]);
    assert_eq!(fs::read(place("lib/longshore/libmpi_abi.so.1")).unwrap(), b"another library");
    for (given, expected) in [(None, only.clone()), (Some("/a"), format!("/a:{only}"))] {
        let mut command = Command::new(place("bin/mpiexec"));
        command.env_remove("LD_LIBRARY_PATH").args(show);
        command.envs(given.map(|given| ("LD_LIBRARY_PATH", given)));
        let shown = command.output().unwrap();
        assert_eq!(text(&shown.stdout).trim(), expected, "{}", text(&shown.stderr));
    }

    let echo = ["-np", "2", "-genv", "LETTER", "b", "sh", "-c", "echo $LETTER"];
    let job = run(place("bin/mpiexec"), &echo);
    assert_eq!((text(&job.stdout), job.status.code()), ("b\nb\n", Some(0)));
}

#[test]
fn commands_that_lack_something_say_what_to_do() {
    let folder = built("uninstalled");
    let compiled = run(folder.join("built/longshore"), &["cc", "a.c"]);
    assert_eq!(compiled.status.code(), Some(1));
    assert!(text(&compiled.stderr).contains("run `longshore install PREFIX`"));
    fs::remove_file(folder.join("built/libmpi_abi.so")).unwrap();
    let prefix = folder.join("prefix");
    let words = ["install", prefix.to_str().unwrap(), "--library", "missing.so"];
    let done = run(folder.join("built/longshore"), &words);
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("missing.so") && !prefix.join("bin").exists());
    let done = run(folder.join("built/longshore"), &["install", prefix.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("cargo build -p longshore-abi"));
    assert!(!prefix.join("bin").exists());
}
