//! `podtether audit`: what in the account bills, and whose it is.

use super::open::{self, ConfigArgs};
use super::{logging, print};
use crate::error::{Failure, StillBilling};
use crate::ops::{self, Audit, Grade};
use chrono::{DateTime, Utc};

/// Arguments of `podtether audit`.
#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Print one JSON object on stdout instead of lines for people.
    #[arg(long)]
    json: bool,
}

/// Runs it: 0 everything that bills is a vehicle's, 1 nothing is known, 3 something bills that no
/// vehicle owns.
pub fn run(args: &AuditArgs) -> u8 {
    match open::block_on(audited(args)) {
        Ok(Ok(audit)) => {
            if args.json {
                print::data(&serde_json::to_string(&audit).unwrap_or_default());
            } else {
                show(&audit);
            }
            if audit.unowned.is_empty() { 0 } else { 3 }
        }
        Ok(Err(failure)) | Err(failure) => {
            // Whatever the reason: a script must not take it for a finding.
            open::failed(&failure, args.json);
            1
        }
    }
}

async fn audited(args: &AuditArgs) -> Result<Audit, Failure> {
    let start = args.config.start()?;
    let _log = logging::start(&start.env);
    let opened = ops::open(&start, open::clock()).await;
    let (tether, _) = opened.map_err(|failure| failure.billing(StillBilling::Unknown))?;
    tether.audit().await
}

fn show(audit: &Audit) {
    for pod in &audit.pods {
        let rate =
            pod.usd_per_hour.map_or_else(|| "price not told".to_owned(), |usd| format!("{usd}/h"));
        print::data(&format!(
            "pod     {} {:?}: {}, {}{}, {rate}, {}",
            pod.id,
            pod.name,
            pod.owner,
            pod.status,
            match pod.grade {
                Some(Grade::BillingFlat) => " (billing is flat)",
                Some(Grade::ApiSays) => " (so the API says)",
                Some(Grade::Asked) | None => "",
            },
            match (pod.since, pod.bills) {
                (None, _) => "since when is not told".to_owned(),
                (Some(at), true) => format!("since {}", minute(at)),
                // It is off since some time after that.
                (Some(at), false) => format!("last started {}", minute(at)),
            }
        ));
    }
    for volume in &audit.volumes {
        print::data(&format!(
            "volume  {} {:?}: {}, {} GB in {}, {} a month, {}",
            volume.id,
            volume.name,
            volume.owner,
            volume.size_gb,
            volume.data_center,
            volume.usd_per_month,
            volume.since.map_or_else(
                || "since when is not told".to_owned(),
                |at| format!("billed since {}", minute(at))
            )
        ));
    }
    print::data(&format!(
        "sum     {}/h now, {} a month at rest",
        audit.usd_per_hour_now, audit.usd_per_month_at_rest
    ));
    print::note(&audit.covers);
    if !audit.unowned.is_empty() {
        print::note(&format!("bills and is no vehicle's: {}", audit.unowned.join(", ")));
    }
}

fn minute(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M UTC").to_string()
}
