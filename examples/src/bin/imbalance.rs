//! See `longshore_examples::imbalance`.

fn main() -> std::process::ExitCode {
    longshore_examples::main("imbalance")
}
