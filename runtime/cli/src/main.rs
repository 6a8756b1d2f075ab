//! The command `longshore`.

mod info;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// One-sided communication between unlike machines.
#[derive(Parser)]
#[command(name = "longshore", version, subcommand_required = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Arguments),
    Info(info::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Run(arguments) => run::main(arguments),
        Command::Info(arguments) => info::main(arguments),
    }
}
