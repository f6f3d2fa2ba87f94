//! `podtether deadman`: the laptop's fuse.

use super::open::{self, ConfigArgs, config_of};
use super::{deadman_fuse, deadman_tick, deadman_timer, logging, print};
use crate::deadman::{self, Called, How, VehicleStatus, Wish};
use crate::domain::Vehicle;
use crate::error::{Failure, FailureKind};
use crate::ops;
use chrono::TimeDelta;
use std::time::Duration;

/// Arguments of `podtether deadman`.
#[derive(Debug, clap::Args)]
pub struct DeadmanArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Arm the fuse of a vehicle: a process of its own stops its pod at the deadline.
    Arm(ArmArgs),
    /// Call the fuse of a vehicle off; its pod goes on.
    Cancel(OneArgs),
    /// Give the fuse of a vehicle more time; never less.
    Extend(ExtendArgs),
    /// Say what became of every fuse; the worst state is the exit code.
    Status(StatusArgs),
    /// Have launchd or systemd look once a minute for fuses whose process is gone.
    Install(deadman_timer::TimerArgs),
    /// Take that away again.
    Uninstall(deadman_timer::TimerArgs),
    /// One look for fuses whose process is gone, as `install` has it made.
    Tick(deadman_timer::TimerArgs),
    /// The fuse itself; started by podtether, with its order on stdin.
    #[command(hide = true)]
    Fuse(deadman_fuse::FuseArgs),
}

#[derive(Debug, clap::Args)]
struct ArmArgs {
    #[command(flatten)]
    one: OneArgs,
    /// When it fires, in hours from now.
    #[arg(long, default_value = "3.0", value_parser = hours)]
    hours: Duration,
    /// How many more cycles of stops are tried when the first was answered in vain; 5 when left out.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1000))]
    retries: Option<u32>,
    /// Between two cycles, in seconds; 300 when left out.
    #[arg(long, value_name = "SEC", value_parser = clap::value_parser!(u64).range(1..=3600))]
    spacing_sec: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct OneArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// The vehicle.
    #[arg(long, value_name = "NAME")]
    vehicle: String,
    /// Print one JSON object on stdout instead of lines for people.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ExtendArgs {
    #[command(flatten)]
    one: OneArgs,
    /// When it fires at the earliest, in hours from now.
    #[arg(long, value_parser = hours)]
    hours: Duration,
}

#[derive(Debug, clap::Args)]
struct StatusArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Only this vehicle.
    #[arg(long, value_name = "NAME")]
    vehicle: Option<String>,
    /// Print one JSON object on stdout instead of lines for people.
    #[arg(long)]
    json: bool,
}

/// A21: a number of hours that ends, and no word for "never".
fn hours(text: &str) -> Result<Duration, String> {
    let wrong = || format!("must be a number of hours above 0 and up to {}", deadman::MAX_HOURS);
    let hours: f64 = text.parse().map_err(|_| wrong())?;
    if !(hours > 0.0 && hours <= deadman::MAX_HOURS) {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(hours * 3600.0).map_err(|_| wrong())
}

/// Runs it. `status`: the worst of armed, stopped, cancelled, refused and not_armed (0), LOST and
/// stop_failed (1), config_error (2). The others: 0 done, 1 not done, 2 refusal or usage.
pub fn run(args: &DeadmanArgs) -> u8 {
    match &args.command {
        Command::Arm(args) => arm(args),
        Command::Cancel(args) => cancel(args),
        Command::Extend(args) => extend(args),
        Command::Status(args) => status(args),
        Command::Install(args) => deadman_timer::install(args),
        Command::Uninstall(args) => deadman_timer::uninstall(args),
        Command::Tick(args) => deadman_tick::run(args),
        Command::Fuse(args) => deadman_fuse::run(args),
    }
}

fn vehicle_of(one: &OneArgs) -> Result<Vehicle, Failure> {
    let start = one.config.start()?;
    config_of(&start)?.vehicle(Some(&one.vehicle)).cloned().map_err(Failure::bad_input)
}

fn arm(args: &ArmArgs) -> u8 {
    let json = args.one.json;
    let armed = open::block_on(async {
        let start = args.one.config.start()?;
        let _log = logging::start(&start.env);
        let (tether, _) = ops::open(&start, open::clock()).await?;
        let vehicle = tether.vehicle(Some(&args.one.vehicle))?;
        let until = tether.clock().now() + TimeDelta::from_std(args.hours).unwrap_or_default();
        let wish = Wish::new(&vehicle, until);
        let wish = Wish {
            retries: args.retries.unwrap_or(wish.retries),
            spacing: args.spacing_sec.map_or(wish.spacing, Duration::from_secs),
            ..wish
        };
        let Some(arming) = tether.arming() else {
            return Err(Failure::new(FailureKind::Internal, "nothing to arm with", ""));
        };
        let armed = deadman::ensure_armed(arming, &wish, tether.clock()).await;
        let armed = armed.map_err(|error| match error {
            // A refusal, not a fault: the key is what it is.
            deadman::ArmError::Denied(_) => {
                Failure { kind: FailureKind::Refused, ..ops::not_armed(&vehicle, &error) }
            }
            error => ops::not_armed(&vehicle, &error),
        })?;
        Ok((armed, deadman::status(&vehicle.name.0, &vehicle.local_log_dir, tether.clock().now())))
    });
    match armed {
        Ok(Ok((armed, status))) => {
            let how = match armed.how {
                How::New => "armed now",
                How::Replaced => "armed now; the process of the fuse before it was gone (LOST)",
                How::Extended => "was armed and is extended",
                How::Already => "was armed for later and is not shortened",
            };
            show(&status, Some(how), json);
            let (retries, spacing) = (armed.record.retries, armed.record.spacing_sec);
            let is_as_asked = args.retries.is_none_or(|given| given == retries)
                && args.spacing_sec.is_none_or(|given| given == spacing);
            if !is_as_asked {
                print::note(&format!(
                    "it stays at --retries {retries} --spacing-sec {spacing}, as it was armed: cancel it and arm it again for others"
                ));
            }
            if !json {
                print::note(
                    "a closed lid or a shut-down machine stops nothing: it fires when this machine wakes (see `podtether deadman install`)",
                );
            }
            0
        }
        Ok(Err(failure)) | Err(failure) => open::failed_over_a_pod(&failure, json),
    }
}

fn cancel(args: &OneArgs) -> u8 {
    let called = open::block_on(async {
        let vehicle = vehicle_of(args)?;
        let clock = open::clock();
        let called =
            deadman::cancel(&vehicle.local_log_dir, deadman::CallOff::ByHand, &clock).await;
        let called = called.map_err(|error| ops::not_armed(&vehicle, &error))?;
        Ok((called, deadman::status(&vehicle.name.0, &vehicle.local_log_dir, clock.now())))
    });
    match called {
        Ok(Ok((called, status))) => {
            let how = match called {
                Called::Cancelled(_) => "called off; the pod goes on and bills",
                Called::WasLost(_) | Called::WasLostUnread => {
                    "its process was gone (LOST); written off. The pod may bill"
                }
                Called::NotArmed => "none was armed",
            };
            show(&status, Some(how), args.json);
            0
        }
        Ok(Err(failure)) | Err(failure) => open::failed_over_a_pod(&failure, args.json),
    }
}

fn extend(args: &ExtendArgs) -> u8 {
    let extended = open::block_on(async {
        let vehicle = vehicle_of(&args.one)?;
        let clock = open::clock();
        let until = clock.now() + TimeDelta::from_std(args.hours).unwrap_or_default();
        let armed = deadman::extend(&Wish::new(&vehicle, until)).await;
        let armed = armed.map_err(|error| ops::not_armed(&vehicle, &error))?;
        Ok((armed, deadman::status(&vehicle.name.0, &vehicle.local_log_dir, clock.now())))
    });
    match extended {
        Ok(Ok((armed, status))) => {
            let how = match armed.how {
                How::Extended => "extended",
                _ => "fires later than that already and is not shortened",
            };
            show(&status, Some(how), args.one.json);
            0
        }
        Ok(Err(failure)) | Err(failure) => open::failed_over_a_pod(&failure, args.one.json),
    }
}

fn status(args: &StatusArgs) -> u8 {
    let statuses = args.config.start().and_then(|start| {
        let config = config_of(&start)?;
        let only = args.vehicle.as_deref();
        let chosen: Vec<Vehicle> = match only {
            Some(_) => vec![config.vehicle(only).cloned().map_err(Failure::bad_input)?],
            None => config.vehicles,
        };
        let now = open::clock().now();
        let of = |vehicle: &Vehicle| deadman::status(&vehicle.name.0, &vehicle.local_log_dir, now);
        Ok(chosen.iter().map(of).collect::<Vec<VehicleStatus>>())
    });
    match statuses {
        Ok(statuses) => {
            let code = deadman::worst(&statuses);
            if args.json {
                let value = serde_json::json!({"code": code, "vehicles": statuses});
                print::data(&value.to_string());
            } else {
                statuses.iter().for_each(|status| show(status, None, false));
            }
            code
        }
        Err(failure) => {
            let failure = open::unless_known(&failure);
            if args.json {
                let value =
                    serde_json::json!({"code": 2, "state": "config_error", "failure": failure});
                print::data(&value.to_string());
            }
            print::note(&format!("config_error: {failure}"));
            2
        }
    }
}

fn show(status: &VehicleStatus, how: Option<&str>, json: bool) {
    if json {
        let value = serde_json::json!({"how": how, "vehicle": status});
        print::data(&value.to_string());
        return;
    }
    let how = how.map_or_else(String::new, |how| format!(" ({how})"));
    print::data(&format!("{}: {}{how}: {}", status.vehicle, status.state, status.message));
    for risk in [&status.at_risk, &status.if_it_sleeps].into_iter().flatten() {
        print::data(&format!("  {risk}"));
    }
    if let Some(at) = status.timer_tick {
        print::data(&format!("  the timer last looked at {}", at.format("%Y-%m-%d %H:%M:%S UTC")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A21: nothing means "never".
    #[test]
    fn hours_are_a_number_that_ends() {
        assert_eq!(hours("3.0"), Ok(Duration::from_secs(10_800)));
        assert_eq!(hours("0.001"), Ok(Duration::from_millis(3600)));
        for text in ["0", "-1", "nan", "inf", "1e9", "off", "", "1h", "168.1"] {
            assert!(hours(text).is_err(), "{text}");
        }
    }
}
