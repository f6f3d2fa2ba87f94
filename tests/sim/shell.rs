//! The shells of simulated pods: a small model that answers the protocol of the scripts in `remote/`
//! and refuses what they refuse.

use super::dice::Dice;
use super::faults::State;
use super::logs::SimLog;
use super::pods::SimJob;
use super::promises;
use super::provider::SharedDoing;
use super::watchdog;
use super::world::{Effect, Shared, World, after};
use async_trait::async_trait;
use podtether::domain::{Pod, PodId, RemoteCommand, Vehicle, scripts};
use podtether::pod::{
    Captured, ExecLimits, ExecOutput, ExecStatus, Shell, ShellError, ShellErrorKind, Shells,
};
use std::future::Future;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Where one session's shells come from.
pub struct SimShells {
    pub world: Shared,
    pub doing: SharedDoing,
    pub session: usize,
}

impl Shells for SimShells {
    fn of(&self, _: &Vehicle, pod: &Pod) -> Result<Arc<dyn Shell>, ShellError> {
        let Some(ssh) = &pod.ssh else {
            return Err(error(ShellErrorKind::NoEndpoint, "no direct SSH endpoint"));
        };
        Ok(Arc::new(SimShell {
            world: self.world.clone(),
            doing: Arc::clone(&self.doing),
            session: self.session,
            pod: pod.id.clone(),
            port: ssh.port,
        }))
    }
}

#[derive(Clone)]
struct SimShell {
    world: Shared,
    doing: SharedDoing,
    session: usize,
    pod: PodId,
    port: u16,
}

fn error(kind: ShellErrorKind, detail: &str) -> ShellError {
    ShellError { kind, tried: "a simulated command".to_owned(), detail: detail.to_owned() }
}

/// How a command ended: its exit code and what it wrote.
struct Ended(u32, String);

#[async_trait]
impl Shell for SimShell {
    async fn run(
        &self,
        command: &RemoteCommand,
        limits: ExecLimits,
    ) -> Result<ExecOutput, ShellError> {
        let argv = command.argv();
        let name = argv.get(3).cloned().unwrap_or_default();
        let args: Vec<&str> = argv.iter().skip(4).map(String::as_str).collect();
        let latency = {
            let op = self.doing.lock().unwrap_or_else(PoisonError::into_inner).op;
            let mut world = self.world.now();
            promises::a_script_is_run(&mut world, &self.pod, op, &name, &args);
            Duration::from_millis(world.dice.between(20, 300))
        };
        tokio::time::sleep(latency).await;
        let (is_down, is_lost, is_there) = {
            let mut world = self.world.now();
            let now = world.truth();
            let run = world.pods.iter().find(|pod| pod.id == self.pod).and_then(|pod| {
                let (_, run) = pod.run_at(now)?;
                (run.port == self.port && pod.bills_at(now)).then_some(run.up?)
            });
            let is_there = run.is_some_and(|up| up <= now);
            let (session, pod) = (self.session, &self.pod);
            world.say(|| format!("s{session} {pod} runs {name}"));
            let is_down = world.is_wrong(State::ShellDown) || world.is_wrong(State::Offline);
            (is_down, world.is_wrong(State::ShellLost), is_there)
        };
        if is_down {
            tokio::time::sleep(Duration::from_secs(15)).await;
            return Err(error(ShellErrorKind::Unreachable, "no connection in time"));
        }
        if !is_there {
            return Err(error(ShellErrorKind::Refused, "nobody listens"));
        }
        let ended = if name == scripts::AWAIT_EXIT.name {
            let waits = tokio::time::timeout(limits.timeout, self.await_exit(&args)).await;
            waits.map_err(|_| error(ShellErrorKind::Lost, "no answer in time"))?
        } else if name == scripts::ARM_WATCHDOG.name || name == scripts::RENEW_LEASE.name {
            // All of it is on the container disk.
            self.answer(&name, &args, command.stdin.len())
        } else if name == scripts::POD_LOOK.name {
            // It waits for the volume as long as it was told to, and answers.
            let patience = Duration::from_secs(args[3].parse().unwrap());
            let hangs = self.world.now().hangs_for();
            tokio::time::sleep(hangs.min(patience)).await;
            self.answer(&name, &args, command.stdin.len())
        } else {
            let (shell, stdin) = (self.clone(), command.stdin.len());
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            self.on_volume(limits.timeout, async move {
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                shell.answer(&name, &args, stdin)
            })
            .await?
        };
        if is_lost {
            tokio::time::sleep(limits.timeout).await;
            return Err(error(ShellErrorKind::Lost, "the link was lost"));
        }
        tokio::time::sleep(latency).await;
        let bytes = ended.1.into_bytes();
        Ok(ExecOutput {
            status: ExecStatus::Code(ended.0),
            stdout: Captured { total: bytes.len() as u64, bytes },
            stderr: Captured::default(),
        })
    }
}

impl SimShell {
    /// A command that touches the volume. Who gave up waiting has not ended it there: it goes on when the volume
    /// answers, if this boot is still the same.
    async fn on_volume(
        &self,
        patience: Duration,
        command: impl Future<Output = Ended> + Send + 'static,
    ) -> Result<Ended, ShellError> {
        let hangs = self.world.now().hangs_for();
        if hangs <= patience {
            tokio::time::sleep(hangs).await;
            return Ok(command.await);
        }
        let boot = self.run_of(&self.world.now());
        let shell = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(hangs).await;
            let is_same = {
                let world = shell.world.now();
                let pod = world.pods.iter().find(|pod| pod.id == shell.pod);
                shell.run_of(&world) == boot && pod.is_some_and(|pod| pod.bills_at(world.truth()))
            };
            if is_same {
                command.await;
            }
        });
        tokio::time::sleep(patience).await;
        Err(error(ShellErrorKind::Lost, "no answer in time"))
    }

    fn answer(&self, name: &str, args: &[&str], stdin: usize) -> Ended {
        let mut world = self.world.now();
        if name == scripts::POD_LOOK.name {
            self.look(&mut world, args)
        } else if name == scripts::PLACE_FILE.name {
            place(&mut world, args, stdin)
        } else if name == scripts::LAUNCH_JOB.name {
            self.launch(&mut world, args)
        } else if name == scripts::CALL_OFF_LAUNCH.name {
            self.call_off(&mut world, args)
        } else if name == scripts::ARM_WATCHDOG.name || name == scripts::RENEW_LEASE.name {
            let Some(run) = self.run_of(&world) else { return Ended(1, String::new()) };
            let answer = match name == scripts::RENEW_LEASE.name {
                true => watchdog::lease(&mut world, &self.pod, run, args),
                false => watchdog::arm(&mut world, &self.pod, run, args),
            };
            answer.map_or_else(|| Ended(2, String::new()), |text| Ended(0, text))
        } else {
            // The list of a folder that is not there.
            Ended(3, String::new())
        }
    }

    fn run_of(&self, world: &World) -> Option<usize> {
        let pod = world.pods.iter().find(|pod| pod.id == self.pod)?;
        pod.run_at(world.truth()).map(|(at, _)| at)
    }

    /// One look: the pod, the jobs that live, and one job when it is asked for.
    fn look(&self, world: &mut World, args: &[&str]) -> Ended {
        let [mount, _, _, _, _, job, max, offset] = args else { return Ended(2, String::new()) };
        let job = match *job {
            "-" => String::new(),
            id => {
                let dir = format!("{mount}/jobs/{id}");
                if world.hangs_for().is_zero() {
                    let log = log_of(world, &dir, max.parse().unwrap(), offset);
                    format!("job={id}\n{}{log}", self.status(world, &dir))
                } else {
                    format!("job={id}\n{}", self.beside(world, &dir))
                }
            }
        };
        let hangs = !world.hangs_for().is_zero();
        let live = if hangs { String::new() } else { self.live(world) };
        let probe = self.probe(world, hangs);
        let dog = self.run_of(world).map(|run| watchdog::report(world, &self.pod, run));
        let dog = dog.unwrap_or_default();
        Ended(0, format!("{probe}{live}{job}{dog}end={}\n", scripts::POD_LOOK.name))
    }

    /// What the wrapper of a job has left beside the volume, in this boot.
    fn beside(&self, world: &World, dir: &str) -> String {
        let run = self.run_of(world);
        let is_it = |job: &&SimJob| job.dir == dir && job.pod == self.pod && Some(job.run) == run;
        match world.jobs.iter().find(is_it) {
            None => String::new(),
            Some(job) if job.ends <= world.truth() => {
                format!("beside_process=dead\nbeside_exit_code={}\n", job.code)
            }
            Some(_) => "beside_process=alive\n".to_owned(),
        }
    }

    fn probe(&self, world: &World, hangs: bool) -> String {
        let pod = world.pods.iter().find(|pod| pod.id == self.pod);
        let zero =
            pod.and_then(|pod| pod.run_at(world.truth())).is_some_and(|(_, run)| run.zero_gpus);
        let busy = if self.is_at_work(world) { 90 } else { 0 };
        let gpu = if zero { String::new() } else { format!("gpu=550.127.05, {busy}, 1, 24564\n") };
        let volume = pod.and_then(|pod| pod.volume.as_ref()).map_or("", |id| id.0.as_str());
        let id = &self.pod;
        let volume = match hangs {
            true => "volume=unresponsive\n".to_owned(),
            false => format!(
                "mount=device\nmount_free_kib=10000000\nidentity={volume}\nwritable=yes\nvolume=answers\n"
            ),
        };
        format!(
            "pod_id={id}\n{gpu}gpu_state=answers\ndisk_free_kib=1000000\nrsync=yes\nuptime_s=1\n{volume}"
        )
    }

    /// Whether a job of this boot has the GPU at work.
    fn is_at_work(&self, world: &World) -> bool {
        let (now, run) = (world.truth(), self.run_of(world));
        let lives = |job: &&SimJob| job.pod == self.pod && Some(job.run) == run && job.ends > now;
        world.jobs.iter().filter(lives).any(|job| job.log.is_at_work(job.age(now)))
    }

    /// At most once, and only what was placed whole.
    fn launch(&self, world: &mut World, args: &[&str]) -> Ended {
        let [dir, scripts_dir, _, ceiling, auto_stop, _] = args else {
            return Ended(2, String::new());
        };
        let needs = [format!("{dir}/cmd.sh"), format!("{scripts_dir}/job_wrapper.sh")];
        if needs.iter().any(|file| !world.placed.contains(file)) {
            return Ended(1, String::new());
        }
        if world.called_off.contains(*dir) {
            return Ended(1, String::new());
        }
        if world.jobs.iter().any(|job| job.dir == *dir) {
            return Ended(0, "already_started\n".to_owned());
        }
        let Some(run) = self.run_of(world) else { return Ended(1, String::new()) };
        let ceiling = Duration::from_secs(ceiling.parse().unwrap());
        let auto_stop = *auto_stop == "1";
        let doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        promises::a_launch(world, &self.pod, ceiling, auto_stop, doing.op);
        let now = world.truth();
        let (takes, code) = job_end(&mut world.dice, ceiling);
        let ends = after(now, takes);
        if auto_stop {
            let late = world.dice.time(1_000, 600_000);
            let stop = Effect::StopSelf(self.pod.clone(), run);
            world.schedule(after(ends, late), stop);
        }
        world.jobs.push(SimJob {
            dir: (*dir).to_owned(),
            pod: self.pod.clone(),
            run,
            from: now,
            ends,
            code,
            ceiling,
            auto_stop,
            log: SimLog::new(now.timestamp_millis().unsigned_abs(), takes, code),
        });
        Ended(0, "launched 4711\n".to_owned())
    }

    fn call_off(&self, world: &mut World, args: &[&str]) -> Ended {
        let [dir, force] = args else { return Ended(2, String::new()) };
        let (now, run) = (world.truth(), self.run_of(world));
        let Some(job) = world.jobs.iter().find(|job| job.dir == *dir) else {
            world.called_off.insert((*dir).to_owned());
            return Ended(0, "called_off\n".to_owned());
        };
        if job.ends > now && Some(job.run) == run {
            return Ended(if *force == "1" { 0 } else { 6 }, "live\n".to_owned());
        }
        Ended(0, "over\n".to_owned())
    }

    fn live(&self, world: &World) -> String {
        let (now, run) = (world.truth(), self.run_of(world));
        let lives = |job: &&SimJob| job.pod == self.pod && Some(job.run) == run && job.ends > now;
        let id = |job: &SimJob| job.dir.rsplit('/').next().unwrap_or_default().to_owned();
        let line = |job: &SimJob| {
            // What podtether wrote there has the laptop's time.
            let from = (job.from + world.laptop_ahead).format("%Y-%m-%dT%H:%M:%SZ");
            let (id, ceiling, auto_stop) = (id(job), job.ceiling.as_secs(), job.auto_stop);
            format!(
                "live={id}\nlive_meta={id} {{\"max_runtime_sec\": {ceiling}, \"auto_stop\": {auto_stop}, \"started_at\": \"{from}\"}}\n"
            )
        };
        let lines: String = world.jobs.iter().filter(lives).map(line).collect();
        format!("{lines}jobs=whole\n")
    }

    fn status(&self, world: &World, dir: &str) -> String {
        let job = world.jobs.iter().find(|job| job.dir == dir);
        let is_off = world.called_off.contains(dir);
        let is_placed = !is_off && world.placed.contains(&format!("{dir}/cmd.sh"));
        match job {
            None if is_placed => {
                "exists=yes\nprocess=none\nexit_code=absent\nmeta=absent\nleftovers=absent\n"
                    .to_owned()
            }
            None => "exists=no\n".to_owned(),
            Some(job) => {
                let (now, ended) = (world.truth(), world.job_end(job));
                let is_this_boot = job.pod == self.pod && Some(job.run) == self.run_of(world);
                let age = (now - job.from).num_seconds().max(0);
                let code = if job.ends <= now && ended == job.ends {
                    format!("process=dead\nexit_code=present\nexit_code_b64={}\n", base64(job.code))
                } else if is_this_boot {
                    "process=alive\nexit_code=absent\n".to_owned()
                } else {
                    "process=other_boot\nexit_code=absent\n".to_owned()
                };
                format!("exists=yes\nlaunch_age_s={age}\n{code}meta=absent\nleftovers=absent\n")
            }
        }
    }

    async fn await_exit(&self, args: &[&str]) -> Ended {
        let [dir, seconds] = args else { return Ended(2, String::new()) };
        let op = self.doing.lock().unwrap_or_else(PoisonError::into_inner).op;
        promises::a_job_is_followed(&mut self.world.now(), &self.pod, op);
        let end = tokio::time::Instant::now() + Duration::from_secs(seconds.parse().unwrap());
        loop {
            let hangs = {
                let world = self.world.now();
                let now = world.truth();
                let is_over = |job: &SimJob| job.dir == *dir && world.job_end(job) <= now;
                let hangs = world.hangs_for();
                if hangs.is_zero() && world.jobs.iter().any(is_over) {
                    return Ended(0, "ended\n".to_owned());
                }
                hangs
            };
            if !hangs.is_zero() {
                // The look at a file that it was about to take does not come back before.
                tokio::time::sleep(hangs).await;
                continue;
            }
            if tokio::time::Instant::now() >= end {
                return Ended(0, "waiting\n".to_owned());
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }
}

/// The log of a job from an offset on, or its end.
fn log_of(world: &mut World, dir: &str, max: usize, offset: &str) -> String {
    use base64::Engine as _;
    let now = world.truth();
    let Some(at) = world.jobs.iter().position(|job| job.dir == dir) else { return String::new() };
    let until = world.job_end(&world.jobs[at]).min(now);
    let job = &mut world.jobs[at];
    let (age, all) = (job.age(until), job.age(now));
    let (text, written) = job.log.by(age);
    let size = text.len();
    let from = offset.parse().unwrap_or(size.saturating_sub(max)).min(size);
    let piece = &text.as_bytes()[from..size.min(from + max)];
    let piece = base64::engine::general_purpose::STANDARD.encode(piece);
    let quiet = all.saturating_sub(written).as_secs();
    format!("log_size={size}\nlog_age_s={quiet}\nlog_offset={from}\nlog_b64={piece}\n")
}

/// stdin into a file, all of it or nothing.
fn place(world: &mut World, args: &[&str], stdin: usize) -> Ended {
    let [path, _, bytes] = args else { return Ended(2, String::new()) };
    if bytes.parse() != Ok(stdin) {
        return Ended(1, String::new());
    }
    world.placed.insert((*path).to_owned());
    Ended(0, String::new())
}

/// How long a job takes and how it ends; at its ceiling, with 124, when it is too long.
fn job_end(dice: &mut Dice, ceiling: Duration) -> (Duration, u8) {
    let takes = dice.time(1_000, 4 * 3_600_000);
    // What is asked for is often what it takes.
    if takes >= ceiling || dice.percent(25) {
        return (ceiling + Duration::from_secs(dice.between(0, 60)), 124);
    }
    (takes, if dice.percent(70) { 0 } else { 1 })
}

fn base64(code: u8) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(format!("{code}\n"))
}
