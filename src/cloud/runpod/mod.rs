//! The client of RunPod REST v2, for the provider and for its twin on loopback. v1 was to be
//! retired on 2026-11-15 and is not spoken.

mod answer;
mod classify;
mod graphql;
mod instant;
mod map;
mod pages;
pub mod request;
mod rest;
mod retry;
mod setup;
mod wire;

pub use rest::USER_AGENT;
pub use setup::{DEFAULT_BASE_URL, LOCAL_KEY_PREFIX, RunPodOptions, SetupError};

use super::{
    Balance, BilledSpan, Changed, Cloud, CloudError, CloudErrorKind, DataCenter, RequestView,
    StopRight,
};
use crate::clock::SharedClock;
use crate::domain::{GpuOffer, Pod, PodId, Volume, VolumeId};
use crate::guard::ApprovedChange;
use crate::plan::Change;
use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use pages::Pages;
use rest::Rest;
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::fmt;

/// The client.
pub struct RunPod {
    rest: Rest,
    is_local: bool,
}

impl fmt::Debug for RunPod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunPod").field("is_local", &self.is_local).finish_non_exhaustive()
    }
}

impl RunPod {
    /// A client; nothing is sent yet.
    ///
    /// # Errors
    /// [`SetupError`] when address, key and kind of cloud do not go together.
    pub fn new(options: RunPodOptions, clock: SharedClock) -> Result<Self, SetupError> {
        let is_local = options.is_local;
        Ok(Self { rest: Rest::new(options, clock)?, is_local })
    }

    /// Every entry of a list, all pages, within one retry budget.
    async fn list<W: DeserializeOwned, T>(
        &self,
        path: &str,
        key: &'static str,
        query: &[(&str, String)],
        map: impl Fn(W) -> Result<T, map::Missing>,
    ) -> Result<Vec<T>, CloudError> {
        let deadline = self.rest.deadline();
        let mut pages = Pages::<W>::new(key);
        let mut query = query.to_vec();
        loop {
            let (answer, body) = self.rest.read(path, &query, deadline).await?;
            let malformed =
                |why: String| self.rest.malformed(&answer, &format!("GET {path}"), &why);
            let next = pages.take(body).map_err(|error| malformed(error.to_string()))?;
            if let Some(cursor) = next {
                query.retain(|(name, _)| *name != "cursor");
                query.push(("cursor", cursor));
                continue;
            }
            let mapped: Result<Vec<T>, map::Missing> = pages.items.into_iter().map(map).collect();
            return mapped.map_err(|error| malformed(error.to_string()));
        }
    }

    /// The spans billed since `since`. The provider widens the window to whole buckets, so the
    /// first span may begin before `since` (I04); each span says its own times, in UTC.
    async fn billing(
        &self,
        path: &str,
        since: DateTime<Utc>,
        map: impl Fn(wire::BillingWire) -> Result<BilledSpan, map::Missing>,
    ) -> Result<Vec<BilledSpan>, CloudError> {
        let query = [
            ("startTime", since.to_rfc3339_opts(SecondsFormat::Secs, true)),
            ("bucketSize", bucket(since, self.rest.clock().now()).to_owned()),
        ];
        self.list(path, "records", &query, map).await
    }
}

/// The bucket that widens a window least without asking for thousands of records: hours for the
/// last 31 days, days for the last year, months before.
fn bucket(since: DateTime<Utc>, now: DateTime<Utc>) -> &'static str {
    match now - since {
        age if age <= TimeDelta::days(31) => "hour",
        age if age <= TimeDelta::days(366) => "day",
        _ => "month",
    }
}

#[async_trait]
impl Cloud for RunPod {
    fn is_local(&self) -> bool {
        self.is_local
    }

    fn preview(&self, change: &Change) -> RequestView {
        request::for_change(change, None)
    }

    async fn pods(&self) -> Result<Vec<Pod>, CloudError> {
        // Members of clusters are left out by default, and they bill too (B07).
        let query = [("includeClusterPods", "true".to_owned())];
        let mut pods = self.list(request::PODS, "pods", &query, map::pod).await?;
        // A pod that moved between two pages is one pod, not a duplicate of a name.
        let mut seen = HashSet::new();
        pods.retain(|pod| seen.insert(pod.id.clone()));
        Ok(pods)
    }

    async fn pod(&self, id: &PodId) -> Result<Option<Pod>, CloudError> {
        let path = request::pod_path(id);
        let tried = format!("GET {path}");
        request::check_id(&id.0).map_err(|error| self.rest.refused(&tried, &error.to_string()))?;
        let (answer, body) = match self.rest.read(&path, &[], self.rest.deadline()).await {
            Ok(read) => read,
            Err(error) if error.kind == CloudErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let malformed = |why: String| self.rest.malformed(&answer, &tried, &why);
        let wire = serde_json::from_value(body).map_err(|error| malformed(error.to_string()))?;
        let pod = map::pod(wire).map_err(|error| malformed(error.to_string()))?;
        if pod.id != *id {
            return Err(malformed(format!("it describes another pod, {}", pod.id)));
        }
        Ok(Some(pod))
    }

    async fn volumes(&self) -> Result<Vec<Volume>, CloudError> {
        self.list(request::VOLUMES, "networkVolumes", &[], map::volume).await
    }

    async fn gpu_offers(&self, gpu_count: u32) -> Result<Vec<GpuOffer>, CloudError> {
        // Stock is told only for a named product; without it the answer is 400.
        let query = [
            ("include", "AVAILABILITY".to_owned()),
            ("product", "POD".to_owned()),
            ("cloud", "SECURE".to_owned()),
            ("count", gpu_count.max(1).to_string()),
        ];
        self.list(request::GPUS, "gpus", &query, map::gpu_offer).await
    }

    async fn data_centers(&self) -> Result<Vec<DataCenter>, CloudError> {
        self.list(request::DATA_CENTERS, "dataCenters", &[], map::data_center).await
    }

    async fn pod_billing(&self, since: DateTime<Utc>) -> Result<Vec<BilledSpan>, CloudError> {
        self.billing(request::POD_BILLING, since, map::pod_bill).await
    }

    async fn volume_billing(&self, since: DateTime<Utc>) -> Result<Vec<BilledSpan>, CloudError> {
        self.billing(request::VOLUME_BILLING, since, map::volume_bill).await
    }

    async fn balance(&self) -> Balance {
        graphql::balance(&self.rest).await
    }

    async fn stop_right(&self) -> StopRight {
        // Of the shape of an id, so that it is not refused for that, and no pod of this account.
        let nobody = Change::StopPod(PodId("podtetherprobe".to_owned()));
        match self.rest.change(&request::for_change(&nobody, None)).await {
            Ok(_) => StopRight::Unproven("the stop of a pod that does not exist went well".into()),
            Err(error) => match error.kind {
                CloudErrorKind::NotFound => StopRight::Proven,
                CloudErrorKind::Auth | CloudErrorKind::Forbidden => {
                    StopRight::Denied(error.to_string())
                }
                _ => StopRight::Unproven(error.to_string()),
            },
        }
    }

    async fn change(
        &self,
        change: ApprovedChange<'_>,
        created: Option<&VolumeId>,
    ) -> Result<Changed, CloudError> {
        let change = change.get();
        let view = request::for_change(change, created);
        let tried = rest::tried(&view);
        request::check(change, created)
            .map_err(|error| self.rest.refused(&tried, &error.to_string()))?;
        let answer = self.rest.change(&view).await?;
        match change {
            Change::CreateVolume(_) => {
                let wire = decoded(&answer.body).map_err(|why| self.lost(&answer, &tried, &why))?;
                map::volume(wire)
                    .map(Changed::Volume)
                    .map_err(|error| self.lost(&answer, &tried, &error.to_string()))
            }
            Change::CreatePod(_) => {
                let wire = decoded(&answer.body).map_err(|why| self.lost(&answer, &tried, &why))?;
                map::pod(wire)
                    .map(|pod| Changed::Pod(Box::new(pod)))
                    .map_err(|error| self.lost(&answer, &tried, &error.to_string()))
            }
            // What the answer says is no proof (A04), so whatever it says will do; a DELETE has no
            // body at all (G14).
            Change::StartPod(id) | Change::StopPod(id) | Change::TerminatePod(id) => {
                let described = decoded(&answer.body).ok().and_then(|wire| map::pod(wire).ok());
                Ok(match described.filter(|pod| pod.id == *id) {
                    Some(pod) => Changed::Pod(Box::new(pod)),
                    None => Changed::Accepted,
                })
            }
        }
    }
}

impl RunPod {
    /// A create that was accepted with an answer that does not say what was created: it has to be
    /// looked up by name, never sent again.
    fn lost(&self, answer: &answer::Answer, tried: &str, why: &str) -> CloudError {
        self.rest.malformed(answer, tried, why)
    }
}

fn decoded<W: DeserializeOwned>(body: &[u8]) -> Result<W, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_young_campaign_is_billed_by_the_hour_and_an_old_one_by_the_day() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(1000);
        assert_eq!(bucket(now - TimeDelta::days(31), now), "hour");
        assert_eq!(bucket(now - TimeDelta::days(32), now), "day");
        assert_eq!(bucket(now - TimeDelta::days(366), now), "day");
        assert_eq!(bucket(now - TimeDelta::days(367), now), "month");
        assert_eq!(bucket(now + TimeDelta::days(1), now), "hour");
    }
}
