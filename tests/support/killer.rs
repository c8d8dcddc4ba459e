//! A host that sends SIGKILL to its own process before the N-th changing verb.

use std::path::PathBuf;
use std::time::Duration;

use engine::Error;
use host::linux::LinuxHost;
use host::{
    BlockProbe, Holder, Host, HostError, MachineFile, MkfsSpec, MountSpec, Priority, RecordFile, RootSpec,
    Space, StateFile, SwapSpec,
};
use logic::device::attribute::Attribute;
use logic::facts::Permissions;
use logic::order::Order;
use logic::path_kind::PathKind;
use logic::record::{MountId, SwapFile};
use logic::vm::Tunable;

/// The real machine, until the kill.
pub struct Killer {
    host: LinuxHost,
    verbs_left: u32,
}

impl Killer {
    /// Kills the process after `verbs` changing verbs.
    pub fn after(verbs: u32) -> Killer {
        Killer { host: LinuxHost::new("/"), verbs_left: verbs }
    }

    fn spend(&mut self) -> &mut LinuxHost {
        if self.verbs_left == 0 {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
        }
        self.verbs_left -= 1;
        &mut self.host
    }
}

impl Host for Killer {
    fn bytes(&self, file: MachineFile) -> Result<Vec<u8>, HostError> {
        self.host.bytes(file)
    }
    fn read_tunable(&self, tunable: Tunable) -> Result<String, HostError> {
        self.host.read_tunable(tunable)
    }
    fn cpus(&self) -> u32 {
        self.host.cpus()
    }
    fn page_size(&self) -> u64 {
        self.host.page_size()
    }
    fn is_privileged(&self) -> bool {
        self.host.is_privileged()
    }
    fn container(&self) -> Option<String> {
        self.host.container()
    }
    fn has_control(&self) -> bool {
        self.host.has_control()
    }
    fn device_numbers(&self) -> Result<Vec<u32>, HostError> {
        self.host.device_numbers()
    }
    fn has_attribute(&self, number: u32, attribute: Attribute) -> bool {
        self.host.has_attribute(number, attribute)
    }
    fn read_attribute(&self, number: u32, attribute: Attribute) -> Result<String, HostError> {
        self.host.read_attribute(number, attribute)
    }
    fn head(&self, number: u32, length: usize) -> Result<Vec<u8>, HostError> {
        self.host.head(number, length)
    }
    fn mount_id(&self, path: &str) -> Result<Option<MountId>, HostError> {
        self.host.mount_id(path)
    }
    fn mount_namespace(&self) -> u64 {
        self.host.mount_namespace()
    }
    fn holders(&self, number: u32) -> Vec<Holder> {
        self.host.holders(number)
    }
    fn mount_users(&self, path: &str) -> Vec<Holder> {
        self.host.mount_users(path)
    }
    fn on_battery(&self) -> Option<u8> {
        self.host.on_battery()
    }
    fn block_bytes(&self, path: &str) -> Result<u64, HostError> {
        self.host.block_bytes(path)
    }
    fn probe_block(&self, path: &str) -> Result<Option<BlockProbe>, HostError> {
        self.host.probe_block(path)
    }
    fn loop_device(&self, number: u32) -> Result<Option<String>, HostError> {
        self.host.loop_device(number)
    }
    fn crypt_device(&self, number: u32) -> Result<Option<String>, HostError> {
        self.host.crypt_device(number)
    }
    fn find_mkfs(&self, fs_type: &str) -> Option<PathBuf> {
        self.host.find_mkfs(fs_type)
    }
    fn path_kind(&self, path: &str) -> PathKind {
        self.host.path_kind(path)
    }
    fn link(&self, path: &str) -> Option<String> {
        self.host.link(path)
    }
    fn permissions(&self, path: &str) -> Option<Permissions> {
        self.host.permissions(path)
    }

    fn names(&self, directory: &str) -> Vec<String> {
        self.host.names(directory)
    }

    fn other_text(&self, file: &str) -> Option<String> {
        self.host.other_text(file)
    }
    fn space(&self, path: &[u8]) -> Result<Space, HostError> {
        self.host.space(path)
    }
    fn scratch_records(&self) -> Result<Vec<RecordFile>, HostError> {
        self.host.scratch_records()
    }
    fn drained(&self) -> Result<Vec<u32>, HostError> {
        self.host.drained()
    }
    fn ramdisk_status(&self, name: &str) -> String {
        self.host.ramdisk_status(name)
    }
    fn namespace_user(&self, namespace: u64) -> Option<Holder> {
        self.host.namespace_user(namespace)
    }
    fn diskseq(&self, node: &str) -> Option<u64> {
        self.host.diskseq(node)
    }
    fn device_age(&self, number: u32) -> Option<Duration> {
        self.host.device_age(number)
    }
    fn device_inode(&self, number: u32) -> Result<u64, HostError> {
        self.host.device_inode(number)
    }
    fn records(&self) -> Result<Vec<RecordFile>, HostError> {
        self.host.records()
    }
    fn read_state(&self, file: StateFile) -> Result<Option<String>, HostError> {
        self.host.read_state(file)
    }
    fn synchronised_clock(&self) -> Option<Duration> {
        self.host.synchronised_clock()
    }
    fn now(&self) -> Duration {
        self.host.now()
    }
    fn monotonic(&self) -> Duration {
        self.host.monotonic()
    }
    fn lock_run(&mut self) -> Result<(), HostError> {
        self.host.lock_run()
    }
    fn unlock_run(&mut self) {
        self.host.unlock_run();
    }
    fn write_state(&mut self, file: StateFile, text: &str) -> Result<(), HostError> {
        self.spend().write_state(file, text)
    }
    fn mark_drained(&mut self, number: u32, drained: bool) -> Result<(), HostError> {
        self.spend().mark_drained(number, drained)
    }
    fn own_scratch(&mut self, name: &str) -> Result<bool, HostError> {
        self.spend().own_scratch(name)
    }
    fn set_priority(&mut self, priority: Priority) {
        self.host.set_priority(priority);
    }
    fn sleep(&mut self, time: Duration) {
        self.host.sleep(time);
    }
    fn random(&mut self) -> [u8; 16] {
        self.host.random()
    }
    fn write_record(&mut self, name: &str, text: &str) -> Result<(), HostError> {
        self.spend().write_record(name, text)
    }
    fn remove_record(&mut self, name: &str) -> Result<(), HostError> {
        self.spend().remove_record(name)
    }
    fn load_module(&mut self) -> Result<(), HostError> {
        self.spend().load_module()
    }
    fn hot_add(&mut self) -> Result<u32, HostError> {
        self.spend().hot_add()
    }
    fn hot_remove(&mut self, number: u32) -> Result<(), HostError> {
        self.spend().hot_remove(number)
    }
    fn write_attribute(&mut self, number: u32, attribute: Attribute, value: &str) -> Result<(), HostError> {
        self.spend().write_attribute(number, attribute, value)
    }
    fn attach_file(&mut self, number: u32, path: &str, bytes: u64) -> Result<(), HostError> {
        self.spend().attach_file(number, path, bytes)
    }
    fn detach_file(&mut self, number: u32) -> Result<(), HostError> {
        self.spend().detach_file(number)
    }
    fn open_crypt(&mut self, number: u32, store: &str) -> Result<(), HostError> {
        self.spend().open_crypt(number, store)
    }
    fn close_crypt(&mut self, number: u32) -> Result<(), HostError> {
        self.spend().close_crypt(number)
    }
    fn lock_device(&mut self, number: u32) -> Result<(), HostError> {
        self.spend().lock_device(number)
    }
    fn unlock_device(&mut self, number: u32) -> Result<(), HostError> {
        self.spend().unlock_device(number)
    }
    fn announce_device(&mut self, number: u32) -> Result<(), HostError> {
        self.spend().announce_device(number)
    }
    fn write_pages(&mut self, number: u32, offset: u64, data: &[u8]) -> Result<(), HostError> {
        self.spend().write_pages(number, offset, data)
    }
    fn read_pages(&mut self, number: u32, offset: u64, length: usize) -> Result<Vec<u8>, HostError> {
        self.spend().read_pages(number, offset, length)
    }
    fn discard(&mut self, number: u32, offset: u64, length: u64) -> Result<(), HostError> {
        self.spend().discard(number, offset, length)
    }
    fn mkfs(&mut self, number: u32, spec: &MkfsSpec) -> Result<(), HostError> {
        self.spend().mkfs(number, spec)
    }
    fn set_root(&mut self, number: u32, fs_type: &str, root: &RootSpec) -> Result<(), HostError> {
        self.spend().set_root(number, fs_type, root)
    }
    fn swap_on(&mut self, number: u32, spec: SwapSpec) -> Result<(), HostError> {
        self.spend().swap_on(number, spec)
    }
    fn swap_off(&mut self, number: u32) -> Result<(), HostError> {
        self.spend().swap_off(number)
    }
    fn remove_swap_file(&mut self, file: &SwapFile) -> Result<(), HostError> {
        self.spend().remove_swap_file(file)
    }
    fn mount(&mut self, spec: &MountSpec) -> Result<(), HostError> {
        self.spend().mount(spec)
    }
    fn remount(&mut self, spec: &MountSpec) -> Result<(), HostError> {
        self.spend().remount(spec)
    }
    fn bind(&mut self, from: &str, to: &str) -> Result<(), HostError> {
        self.spend().bind(from, to)
    }
    fn run_worker(&mut self, order: &Order) -> Result<(), Error> {
        self.spend().run_worker(order)
    }
    fn unmount(&mut self, path: &[u8], mount: &MountId) -> Result<(), HostError> {
        self.spend().unmount(path, mount)
    }
    fn write_tunable(&mut self, tunable: Tunable, value: &str) -> Result<(), HostError> {
        self.spend().write_tunable(tunable, value)
    }
    fn make_directory(&mut self, path: &str) -> Result<(), HostError> {
        self.spend().make_directory(path)
    }
    fn remove_directory(&mut self, path: &str) -> Result<(), HostError> {
        self.spend().remove_directory(path)
    }
}
