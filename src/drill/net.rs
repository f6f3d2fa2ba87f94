//! The outer net: a laptop's fuse of the drill's own, in a place of its own, so that it and the fuse
//! that is tried know nothing of each other. It is set anew before every boot, so whatever becomes of
//! the drill, the pod is off soon after the step that it broke off in.

use crate::deadman::{self, Arming, CallOff, Wish};
use crate::domain::{PodId, UsdPerHour, Vehicle};
use crate::error::{Failure, FailureKind};
use crate::ops::{Tether, not_armed};
use chrono::{DateTime, TimeDelta, Utc};
use std::path::PathBuf;
use std::time::Duration;

/// The net under one drill.
pub(super) struct Net<'a> {
    tether: &'a Tether,
    arming: &'a Arming,
    vehicle: &'a Vehicle,
    rate: UsdPerHour,
    folder: PathBuf,
}

impl<'a> Net<'a> {
    pub(super) fn new(
        tether: &'a Tether,
        vehicle: &'a Vehicle,
        rate: UsdPerHour,
    ) -> Result<Self, Failure> {
        let arming = tether.arming().ok_or_else(|| {
            let message = "a drill needs the laptop's fuse, and this process cannot arm one";
            Failure::new(FailureKind::Internal, message, "this is a mistake in podtether")
        })?;
        // Beside the vehicle's own, whose place is the log folder itself.
        let folder = vehicle.local_log_dir.join(".podtether").join("drill");
        Ok(Self { tether, arming, vehicle, rate, folder })
    }

    pub(super) const fn arming(&self) -> &Arming {
        self.arming
    }

    /// Has it fire no earlier than in `time`, and returns when it does. It never fires earlier than it
    /// was set to before.
    pub(super) async fn set(
        &self,
        time: Duration,
        pod: Option<&PodId>,
    ) -> Result<DateTime<Utc>, Failure> {
        let time = TimeDelta::from_std(time).unwrap_or(TimeDelta::MAX);
        let until = self.tether.clock().now().checked_add_signed(time);
        let mut wish = Wish::new(self.vehicle, until.unwrap_or(DateTime::<Utc>::MAX_UTC));
        wish.folder.clone_from(&self.folder);
        wish.pod = pod.cloned();
        wish.usd_per_hour = Some(self.rate.per_hour());
        wish.spacing = Duration::from_secs(60);
        let armed = deadman::ensure_armed(self.arming, &wish, self.tether.clock()).await;
        armed.map(|armed| armed.record.fire_at).map_err(|error| not_armed(self.vehicle, &error))
    }

    /// Takes it away, once the pod was read as off.
    pub(super) async fn cut(&self) -> Result<(), Failure> {
        let why = "the drill is over and its pod was read as off";
        // The place is the drill's own, and there is one drill at a time: nobody else claims it.
        let claim = deadman::last_claim(&self.folder);
        let call_off = CallOff::ReadOff { why, claim: claim.as_ref() };
        let cut = deadman::cancel(&self.folder, call_off, self.tether.clock()).await;
        cut.map(|_| ()).map_err(|error| not_armed(self.vehicle, &error))
    }
}
