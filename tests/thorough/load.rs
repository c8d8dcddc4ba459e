//! Many clients, and misbehaving ones: other clients are still served, and no memory is lost.

use std::cell::Cell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::support::private_bus::{PrivateBus, call, client, next, quiet_devices, run};
use crate::support::raw::Raw;
use crate::support::{eventually, eventually_some, figures, skip};
use futures_core::Stream;
use service::ROOT;
use zbus::message::Flags;
use zbus::wire::DynamicType;
use zbus::{Connection, Message, MessageStream, ObjectPath, OwnedObjectPath, OwnedVariant, Variant};

/// The limit of one user; root may have all subscriptions.
fn subscribers() -> u32 {
    if rustix::process::geteuid().is_root() { 200 } else { 64 }
}
const CALLERS: usize = 4;
/// Maximum time until a new client has all answers.
const PATIENCE: Duration = Duration::from_secs(5);
/// Allowed growth of the heap between equal loads, in KiB.
const GROWTH: u64 = 256;
/// Loads until the heap has its final size, apart from fragmentation.
const FIRST: u32 = 3;
/// Further loads. A leak of 200 bytes per client is detected.
const MORE: u32 = 6;

/// Result of a load.
#[derive(Debug, Default)]
struct Round {
    calls: Rc<Cell<u32>>,
    samples: Rc<Cell<u32>>,
    slowest: Rc<Cell<Duration>>,
}

/// Subscribers at the shortest interval, callers without pauses, and occasionally a new client that reads everything. In the
/// end all of them disconnect without unsubscribing.
async fn load(address: &str, time: Duration) -> Round {
    let round = Round::default();
    let mut clients = Vec::new();
    let tasks = tokio::task::LocalSet::new();
    for _ in 0..subscribers() {
        let client = client(address).await;
        call::<_, ()>(&client, ROOT, "org.zramd1.Manager.Subscribe", &100_u32).await.unwrap();
        let rule = "type='signal',interface='org.zramd1.Device',member='StatsUpdated'";
        let stream = MessageStream::for_match_rule(rule, &client, None).await.unwrap();
        tasks.spawn_local(count(stream, Rc::clone(&round.samples)));
        clients.push(client);
    }
    for _ in 0..CALLERS {
        let (client, calls) = (client(address).await, Rc::clone(&round.calls));
        tasks.spawn_local(ask(client, calls));
    }
    let end = tokio::time::Instant::now() + time;
    let newcomers = async {
        while tokio::time::Instant::now() < end {
            round.slowest.set(round.slowest.get().max(newcomer(address).await));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tasks.run_until(newcomers).await;
    drop(clients);
    round
}

/// Time until a new client has read everything.
async fn newcomer(address: &str) -> Duration {
    let begun = Instant::now();
    let client = client(address).await;
    let _: String = call(&client, ROOT, "org.zramd1.Manager.Describe", &()).await.unwrap();
    begun.elapsed()
}

async fn count(mut stream: MessageStream, samples: Rc<Cell<u32>>) {
    // Without devices there are no samples to wait for.
    while let Some(Ok(_)) = poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
        samples.set(samples.get() + 1);
    }
}

async fn ask(client: Connection, calls: Rc<Cell<u32>>) {
    loop {
        let method = "org.freedesktop.DBus.Properties.GetAll";
        let _: HashMap<String, OwnedVariant> =
            call(&client, ROOT, method, &"org.zramd1.Manager").await.unwrap();
        calls.set(calls.get() + 1);
    }
}

async fn devices(client: &Connection) -> Vec<(String, OwnedObjectPath, String)> {
    call(client, ROOT, "org.zramd1.Manager.ListDevices", &()).await.unwrap()
}

/// Size of the heap after a load, when its threads and subscriptions have ended.
fn afterwards(bus: &PrivateBus) -> u64 {
    eventually("one thread is left", || figures::switches(bus.pid()).len() == 1);
    assert!(
        figures::is_idle(bus.pid(), Duration::from_secs(1)),
        "a client that has left still causes wake-ups"
    );
    figures::anonymous(bus.pid())
}

#[test]
fn many_clients_that_vanish_leave_nothing_behind() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_apart() else { return };
    let no_device = run(async { devices(&bus.client().await).await.is_empty() });
    let [first, more] = [FIRST, MORE].map(|rounds| {
        for _ in 0..rounds {
            let time = Duration::from_millis(400);
            let round = run(load(bus.address(), time));
            let rate = f64::from(round.calls.get()) / time.as_secs_f64();
            println!(
                "{} subscribers got {} samples, {CALLERS} callers {rate:.0} answers a second; \
                 Describe for a newcomer took {:?} at most",
                subscribers(),
                round.samples.get(),
                round.slowest.get()
            );
            assert!(round.slowest.get() <= PATIENCE, "{round:?}");
            // Each subscriber gets samples; 4 are due.
            assert!(no_device || round.samples.get() >= 2 * subscribers(), "{round:?}");
        }
        afterwards(&bus)
    });
    println!("heap: {first} KiB after {FIRST} loads, {more} KiB after {MORE} more");
    assert!(more <= first + GROWTH, "{first} {more}");
}

/// At the limit the next subscriber is refused, and accepted after another one has left.
#[test]
fn subscriptions_are_limited() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_apart() else { return };
    run(async {
        let mut clients = Vec::new();
        let subscribe = "org.zramd1.Manager.Subscribe";
        let most = if rustix::process::geteuid().is_root() { 256 } else { 64 };
        for _ in 0..most {
            let client = bus.client().await;
            call::<_, ()>(&client, ROOT, subscribe, &3_600_000_u32).await.unwrap();
            clients.push(client);
        }
        let late = bus.client().await;
        let refused = call::<_, ()>(&late, ROOT, subscribe, &3_600_000_u32).await;
        assert_eq!(refused, Err("org.zramd1.Error.LimitExceeded".to_owned()));
        // An existing subscriber can still change the interval.
        call::<_, ()>(&clients[0], ROOT, subscribe, &3_600_000_u32).await.unwrap();
        drop(clients.pop());
        let subscribed = async || call::<_, ()>(&late, ROOT, subscribe, &3_600_000_u32).await.ok();
        eventually_some("a free subscription", subscribed).await;
    });
}

/// A subscription of a user who does not wait for the reply.
fn subscription() -> Message {
    let call =
        Message::method_call(ROOT, "Subscribe").destination("org.zramd1").interface("org.zramd1.Manager");
    call.with_flags(Flags::NO_REPLY_EXPECTED).build(&100_u32).unwrap()
}

/// These clients disconnect before the daemon has read the message.
#[test]
fn a_subscriber_that_leaves_at_once_is_removed() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_apart() else { return };
    for _ in 0..20 {
        Raw::connect(&bus.bus().socket()).send(&subscription());
    }
    run(newcomer(bus.address()));
    afterwards(&bus);
}

/// Makes this thread one of an unprivileged user.
fn become_ordinary() {
    let user = rustix::process::Uid::from_raw(65534);
    rustix::thread::set_thread_res_uid(user, user, user).unwrap();
}

/// One user cannot use up all subscriptions.
#[test]
fn one_user_has_a_share_of_the_subscriptions() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root, to be two users");
    }
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_apart() else { return };
    let socket = bus.bus().socket();
    let subscribe = || call_of(ROOT, "org.zramd1.Manager", "Subscribe", &3_600_000_u32);
    let told = std::thread::spawn(move || {
        become_ordinary();
        let clients = (0..70).map(|_| {
            let mut client = Raw::connect(&socket);
            client.send(&subscribe());
            let answer = client.answer();
            (client, answer.is_error.then_some(answer.header))
        });
        let clients: Vec<(Raw, Option<String>)> = clients.collect();
        clients.into_iter().filter_map(|(_, told)| told).collect::<Vec<String>>()
    });
    let told = told.join().unwrap();
    assert_eq!(told.len(), 6, "{told:?}");
    assert!(told.iter().all(|error| error.contains("org.zramd1.Error.LimitExceeded")), "{told:?}");
}

/// What is meant for a client that never reads waits at the bus: the daemon does not wait for it.
#[test]
fn a_client_that_never_reads_is_not_waited_for() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_apart() else { return };
    let everything: Vec<ObjectPath<'_>> = Vec::new();
    let subscription = call_of(ROOT, "org.zramd1.Manager", "SubscribeTo", &(100_u32, everything));
    let describe = call_of(ROOT, "org.zramd1.Manager", "Describe", &());
    let mut heaps = Vec::new();
    for _ in 0..2 {
        let mut deaf: Vec<Raw> = (0..20).map(|_| Raw::connect(&bus.bus().socket())).collect();
        for client in &mut deaf {
            client.send(&subscription);
            (0..100).for_each(|_| client.send(&describe));
        }
        run(async {
            let client = bus.client().await;
            let mut samples = MessageStream::from(&client);
            let totals = vec![ObjectPath::try_from(ROOT).unwrap()];
            call::<_, ()>(&client, ROOT, "org.zramd1.Manager.SubscribeTo", &(100_u32, totals)).await.unwrap();
            let mut seen = 0;
            while seen < 10 {
                let message = next(&mut samples).await;
                seen += u32::from(message.header().member().is_some_and(|it| it == "TotalsUpdated"));
            }
            let slowest = newcomer(bus.address()).await;
            assert!(slowest <= PATIENCE, "{slowest:?}");
        });
        drop(deaf);
        heaps.push(afterwards(&bus));
    }
    println!("heap: {heaps:?} KiB after each");
    assert!(heaps[1] <= heaps[0] + GROWTH, "{heaps:?}");
}

/// A client claims that another one has left the bus; only such signals from the bus itself count.
#[test]
fn a_client_cannot_end_the_subscription_of_another() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_apart() else { return };
    run(async {
        let (victim, liar) = (bus.client().await, bus.client().await);
        if devices(&victim).await.is_empty() {
            return skip("needs a zram device");
        }
        let rule = "type='signal',interface='org.zramd1.Device',member='StatsUpdated'";
        let mut samples = MessageStream::for_match_rule(rule, &victim, None).await.unwrap();
        call::<_, ()>(&victim, ROOT, "org.zramd1.Manager.Subscribe", &100_u32).await.unwrap();
        let name = victim.unique_name().unwrap().as_str();
        let path = "/org/freedesktop/DBus";
        let interface = "org.freedesktop.DBus";
        for _ in 0..10 {
            let lie = (name, name, "");
            liar.emit_signal(Some("org.zramd1"), path, interface, "NameOwnerChanged", &lie).await.unwrap();
        }
        // The reply arrives after the forged signals.
        let _: String = call(&liar, ROOT, "org.zramd1.Manager.Describe", &()).await.unwrap();
        for _ in 0..5 {
            next(&mut samples).await;
        }
    });
}

/// A call of any method with any arguments.
fn call_of<B: serde::Serialize + DynamicType>(
    path: &str,
    interface: &str,
    member: &str,
    body: &B,
) -> Message {
    let call = Message::method_call(path, member).destination("org.zramd1");
    let call = if interface.is_empty() { call } else { call.interface(interface) };
    call.build(body).unwrap()
}

/// Well-formed messages, which the bus delivers, with invalid contents.
fn nonsense() -> Vec<Message> {
    let manager = "org.zramd1.Manager";
    let huge = "x".repeat(4 * 1024 * 1024);
    let mut deep = Variant::from(0_u32);
    for _ in 0..20 {
        deep = Variant::Variant(Box::new(deep));
    }
    let options: HashMap<String, Variant<'_>> =
        (0..5000).map(|number| (format!("option{number}"), Variant::from("x".repeat(100)))).collect();
    let bytes = vec![0xff_u8; 1024 * 1024];
    vec![
        call_of(ROOT, manager, "Subscribe", &("100", 1_u8, vec![1_i16])),
        call_of(ROOT, manager, "Subscribe", &()),
        call_of(ROOT, manager, "Subscribe", &(deep.try_clone().unwrap(),)),
        call_of(ROOT, manager, "GetDevice", &(huge.as_str(),)),
        call_of(ROOT, manager, "GetRamDisk", &(huge.as_str(),)),
        call_of(ROOT, manager, "GetDevice", &(bytes,)),
        call_of(ROOT, manager, "Plan", &(HashMap::from([(huge.as_str(), deep)]),)),
        call_of(ROOT, manager, "Plan", &(HashMap::from([("force", Variant::from(huge.as_str()))]),)),
        call_of(ROOT, manager, "Plan", &(options,)),
        call_of(ROOT, manager, "Nothing", &(huge.as_str(),)),
        call_of(ROOT, "org.example.Nothing", "Describe", &()),
        call_of(ROOT, "", "Nothing", &()),
        call_of(ROOT, "org.freedesktop.DBus.Properties", "Get", &(huge.as_str(), huge.as_str())),
        call_of(ROOT, "org.freedesktop.DBus.Properties", "Set", &(manager, "State", Variant::from(1_u8))),
        call_of(ROOT, "org.freedesktop.DBus.Properties", "GetAll", &(1_u8,)),
        call_of("/", manager, "Describe", &()),
        call_of("/org/zramd1/device/zram4000000", "org.zramd1.Device", "GetStats", &()),
        call_of("/org/zramd1/ramdisk/_", "org.zramd1.RamDisk", "GetAll", &()),
        call_of(&format!("/{}", "a/".repeat(1000) + "a"), manager, "Describe", &()),
        call_of(ROOT, &format!("org.zramd1.{}", "M".repeat(200)), &"m".repeat(255), &()),
    ]
}

/// Malformed messages, for which the bus disconnects the sender.
fn malformed() -> Vec<Vec<u8>> {
    let good = call_of(ROOT, "org.zramd1.Manager", "GetDevice", &("zram0",));
    let good: &[u8] = good.data();
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.to_vec();
        bytes[at] = byte;
        bytes
    };
    // Wrong version of the protocol, lengths beyond the limit, an unterminated string, no protocol at all.
    let end = good.len() - 1;
    vec![
        changed(3, 9),
        changed(7, 0xff),
        changed(15, 0xff),
        changed(end, b'x'),
        b"GET / HTTP/1.1\r\n\r\n".repeat(10),
    ]
}

fn talk_nonsense(bus: &PrivateBus) {
    let mut rude = Raw::connect(&bus.bus().socket());
    for (number, message) in nonsense().iter().enumerate() {
        rude.send(message);
        let answer = rude.answer();
        assert!(answer.is_error, "{number}: {answer:?}");
        assert!(answer.body < 8192, "{number}: an error of {} bytes", answer.body);
    }
    for bytes in malformed() {
        let mut rude = Raw::connect(&bus.bus().socket());
        // It may be disconnected before the end.
        rude.try_send_bytes(&bytes).ok();
        assert!(rude.is_closed(), "{bytes:?}");
    }
    // Many calls at once, without waiting for replies.
    let mut rude = Raw::connect(&bus.bus().socket());
    let call =
        Message::method_call(ROOT, "Describe").destination("org.zramd1").interface("org.zramd1.Manager");
    let call = call.with_flags(Flags::NO_REPLY_EXPECTED).build(&()).unwrap();
    let signal = Message::signal(ROOT, "org.zramd1.Manager", "Describe").destination("org.zramd1");
    let signal = signal.build(&("x".repeat(1000),)).unwrap();
    for _ in 0..500 {
        rude.send(&call);
        rude.send(&signal);
    }
}

#[test]
fn invalid_messages_are_answered_and_use_no_memory() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_apart() else { return };
    let before = afterwards(&bus);
    let mut after = Vec::new();
    for _ in 0..2 {
        for _ in 0..5 {
            talk_nonsense(&bus);
        }
        // Other clients are still served.
        let time = run(newcomer(bus.address()));
        assert!(time <= PATIENCE, "{time:?}");
        after.push(afterwards(&bus));
    }
    println!("heap: {before} KiB before, {after:?} KiB after");
    assert!(after[1] <= after[0] + GROWTH, "{before} {after:?}");
}

/// An unprivileged user sends messages of many megabytes, with values that need much more memory than on the wire.
#[test]
fn huge_options_are_not_kept_in_memory() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_apart() else { return };
    run(newcomer(bus.address()));
    let before = figures::peak(bus.pid());
    let huge: Vec<Message> = ["Plan", "CreateDevice"]
        .into_iter()
        .flat_map(|member| {
            let entries: HashMap<String, Variant<'_>> =
                (0..300_000).map(|number| (number.to_string(), Variant::from(0_u8))).collect();
            let words = HashMap::from([("name", Variant::from(vec![""; 1_000_000]))]);
            let manager = "org.zramd1.Manager";
            [call_of(ROOT, manager, member, &(entries,)), call_of(ROOT, manager, member, &(words,))]
        })
        .chain([call_of(ROOT, "org.zramd1.Manager", "RemoveDevice", &{
            ("x".repeat(8 * 1024 * 1024), HashMap::<String, Variant<'_>>::new())
        })])
        .collect();
    let longest = huge.iter().map(|message| message.data().len()).max().unwrap() as u64 / 1024;
    let mut rude = Raw::connect(&bus.bus().socket());
    for message in &huge {
        rude.send(message);
    }
    let slowest = run(newcomer(bus.address()));
    for _ in &huge {
        let answer = rude.answer();
        assert!(answer.is_error, "{answer:?}");
        let told = answer.header.contains("InvalidArgs") || answer.header.contains("LimitExceeded");
        assert!(told && answer.body < 8192, "{answer:?}");
    }
    let after = figures::peak(bus.pid());
    println!(
        "{longest} KiB: {before} KiB before, {after} KiB at the peak; Describe took {slowest:?} meanwhile"
    );
    assert!(after <= before + FLOOD, "{before} {after}");
    assert!(slowest <= PATIENCE, "{slowest:?}");
}

/// Calls that wait for another program: the bus, polkit, `zramd-setup`. None of them changes anything.
fn waiting_calls() -> [Message; 2] {
    let manager = "org.zramd1.Manager";
    let options = HashMap::<String, Variant<'_>>::new();
    [
        call_of(ROOT, manager, "RemoveDevice", &("zram4000000", options.clone())),
        call_of(ROOT, manager, "Plan", &(options,)),
    ]
}

/// A caller that sends calls without waiting for replies.
#[test]
fn calls_that_wait_do_not_pile_up() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_apart() else { return };
    run(newcomer(bus.address()));
    let before = figures::peak(bus.pid());
    let mut slowest = Duration::ZERO;
    for call in waiting_calls() {
        std::thread::scope(|scope| {
            let flood = scope.spawn(|| {
                let mut rude = Raw::connect(&bus.bus().socket());
                let mut bytes = call.data().to_vec();
                // NO_REPLY_EXPECTED: the bus does not count such calls.
                bytes[2] |= 1;
                for _ in 0..200 {
                    rude.send_bytes(&bytes.repeat(100));
                }
                rude
            });
            while !flood.is_finished() {
                slowest = slowest.max(run(newcomer(bus.address())));
            }
            let rude = flood.join().unwrap();
            slowest = slowest.max(run(newcomer(bus.address())));
            drop(rude);
        });
    }
    let after = figures::peak(bus.pid());
    println!("flooded: {before} KiB before, {after} KiB at the peak; Describe took {slowest:?} at most");
    assert!(after <= before + 16 * 1024, "{before} {after}");
    assert!(slowest <= PATIENCE, "{slowest:?}");
    afterwards(&bus);
}

#[test]
fn too_many_waiting_calls_are_refused() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_apart() else { return };
    let mut rude = Raw::connect(&bus.bus().socket());
    let number = 100;
    for _ in 0..number {
        // A new message each time: the bus requires distinct serial numbers.
        let [_, plan] = waiting_calls();
        rude.send(&plan);
    }
    let answers: Vec<_> = (0..number).map(|_| rude.answer()).collect();
    let told =
        answers.iter().filter(|answer| answer.header.contains("org.zramd1.Error.LimitExceeded")).count();
    println!("{told} of {number} were too many");
    assert!(told > 0 && told <= number - 8, "{told}");
}

/// This bus delivers messages of up to 32 MiB.
const LONG: usize = 31 * 1024 * 1024;
/// Allowed memory of the daemon for a flood, in KiB.
const FLOOD: u64 = 8 * 1024;

/// Runs `does` as an unprivileged user if the test is run by root.
fn as_ordinary<T: Send + 'static>(does: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
    let is_root = rustix::process::geteuid().is_root();
    std::thread::spawn(move || {
        if is_root {
            become_ordinary();
        }
        does()
    })
}

#[test]
fn long_messages_cost_no_memory() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_apart() else { return };
    run(newcomer(bus.address()));
    let before = figures::peak(bus.pid());
    let floods: Vec<_> = (0..4)
        .map(|_| {
            let socket = bus.bus().socket();
            as_ordinary(move || {
                let mut rude = Raw::connect(&socket);
                let manager = "org.zramd1.Manager";
                let text = "x".repeat(LONG);
                rude.send(&call_of(ROOT, manager, "GetDevice", &(text.as_str(),)));
                let signal = Message::signal(ROOT, manager, "PressureChanged").destination("org.zramd1");
                rude.send(&signal.build(&(text.as_str(),)).unwrap());
                let nothing = HashMap::<String, Variant<'_>>::new();
                rude.send(&call_of(ROOT, manager, "RemoveDevice", &(text.as_str(), nothing)));
                // A message that is too long is dropped, also if its header is the long part.
                rude.send(&call_of(&format!("/{text}"), manager, "Describe", &()));
                rude.send(&call_of(ROOT, manager, "ListDevices", &()));
                (0..3).map(|_| rude.answer()).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut slowest = Duration::ZERO;
    while floods.iter().any(|flood| !flood.is_finished()) {
        slowest = slowest.max(run(newcomer(bus.address())));
    }
    for flood in floods {
        let answers = flood.join().unwrap();
        assert!(answers.iter().map(|answer| answer.is_error).eq([true, true, false]), "{answers:?}");
    }
    let after = figures::peak(bus.pid());
    println!("flooded: {before} KiB before, {after} KiB at the peak; Describe took {slowest:?} at most");
    assert!(after <= before + FLOOD, "{before} {after}");
}

/// One user cannot have many waiting calls, with any number of connections.
#[test]
fn one_user_has_a_share_of_the_waiting_calls() {
    if !rustix::process::geteuid().is_root() {
        return skip("root has no such limit, so it needs root, to be another user");
    }
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_apart() else { return };
    let socket = bus.bus().socket();
    let answers = as_ordinary(move || {
        let mut rude: Vec<Raw> = (0..40).map(|_| Raw::connect(&socket)).collect();
        for one in &mut rude {
            for _ in 0..8 {
                let [_, plan] = waiting_calls();
                one.send(&plan);
            }
        }
        let answers = rude.iter_mut().flat_map(|one| [(); 8].map(|()| one.answer()));
        answers.filter(|answer| answer.header.contains("org.zramd1.Error.LimitExceeded")).count()
    });
    let told = answers.join().unwrap();
    println!("{told} of 320 were too many");
    assert!(told > 0 && told <= 320 - 32, "{told}");
}
