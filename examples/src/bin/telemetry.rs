//! See `longshore_examples::telemetry`.

fn main() -> std::process::ExitCode {
    longshore_examples::main("telemetry")
}
