#include "stagecraft/tests/hosts/test_slurm.h"

#include <chrono>
#include <filesystem>
#include <random>
#include <sstream>
#include <stdexcept>

#include "stagecraft/tests/support/eventually.h"

namespace stagecraft::tests {
namespace {

constexpr std::chrono::seconds kStartLimit{90};

/// Ends every process that a program starts, however it detaches itself, with the program.
const std::vector<std::string> kAlone{
    "unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"};

/// Gives the host a name and lets it know the names of the others.
constexpr const char* kBeHost =
    "hostname \"$1\" && mount --bind \"$2\" /etc/hosts && shift 2 && exec \"$@\"";

std::string key() {
  std::random_device random;
  std::string bytes;
  for (int i = 0; i < 128; ++i) {
    bytes += static_cast<char>(random() % 256);
  }
  return bytes;
}

/// Nodes have more processors and memory than this machine: tests say what jobs ask for.
std::string configuration(const std::string& folder, int nodes, const TestSlurmOptions& options) {
  std::ostringstream text;
  text << "ClusterName=test\n"
       << "SlurmctldHost=" << TestHosts::name(0) << "(" << TestHosts::address(0) << ")\n"
       << "SlurmUser=root\nSlurmdUser=root\n"
       << "AuthType=auth/munge\nAuthInfo=socket=" << folder << "/munge.socket\n"
       << "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
       << "JobAcctGatherType=jobacct_gather/none\nMpiDefault=none\n"
       << "SelectType=select/cons_tres\nSelectTypeParameters="
       << (options.allocates_memory ? "CR_CPU_Memory\n" : "CR_CPU\n")
       << "SlurmdParameters=config_overrides\nReturnToService=2\n"
       << "SlurmctldTimeout=300\nSlurmdTimeout=300\nMessageTimeout=60\n"
       << "SchedulerParameters=batch_sched_delay=0\n"
       << "StateSaveLocation=" << folder << "/state\nSlurmdSpoolDir=" << folder << "/spool-%n\n"
       << "SlurmctldPidFile=" << folder << "/slurmctld.pid\n"
       << "SlurmdPidFile=" << folder << "/slurmd-%n.pid\n";
  for (int node = 0; node < nodes; ++node) {
    text << "NodeName=" << options.node_prefix << node << " NodeHostname=" << TestHosts::name(node)
         << " NodeAddr=" << TestHosts::address(node) << " CPUs=16 RealMemory=16000 State=UNKNOWN\n";
  }
  text << "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
  return text.str();
}

}  // namespace

std::optional<std::string> TestSlurm::obstacle() {
  if (auto why = TestHosts::obstacle()) {
    return why;
  }
  for (const char* program : {"munged", "slurmctld", "slurmd", "srun", "sbatch"}) {
    if (run_command({"sh", "-c", std::string("command -v ") + program}).exit_code != 0) {
      return std::string("there is no ") + program +
             ": install munge, slurmctld, slurmd and slurm-client";
    }
  }
  std::vector<std::string> words = kAlone;
  words.emplace_back("true");
  const CommandResult tried = run_command(words);
  return tried.exit_code == 0 ? std::nullopt
                              : std::optional("no process namespace can be made: " + tried.err);
}

TestSlurm::TestSlurm(int nodes, TestSlurmOptions options)
    : nodes_(nodes), options_(std::move(options)), hosts_(nodes) {
  write_files();
  start(0,
        "munged",
        {"munged",
         "--foreground",
         "--force",  // it refuses a socket that others cannot reach
         "--key-file=" + file("munge.key"),
         "--socket=" + file("munge.socket"),
         "--pid-file=" + file("munged.pid"),
         "--log-file=" + file("munged.log"),
         "--seed-file=" + file("munged.seed")});
  start(0, "slurmctld", {"slurmctld", "-D"});
  for (int node = 0; node < nodes_; ++node) {
    start(node, "slurmd-" + TestHosts::name(node), {"slurmd", "-D"});
  }
  wait_for_nodes();
}

void TestSlurm::write_files() const {
  namespace fs = std::filesystem;
  fs::permissions(state_.write("munge.key", key()), fs::perms::owner_read);
  state_.write("slurm.conf", configuration(state_.path(), nodes_, options_));
  // Namespaces do not see the groups of this machine, which slurmd would otherwise use to choose.
  state_.write("cgroup.conf", "CgroupPlugin=cgroup/v1\n");
  fs::create_directory(file("state"));
  std::string names = "127.0.0.1 localhost\n";
  for (int node = 0; node < nodes_; ++node) {
    fs::create_directory(file("spool-" + options_.node_prefix + std::to_string(node)));
    names += TestHosts::address(node) + " " + TestHosts::name(node) +
             (options_.nodes_resolve ? " " + options_.node_prefix + std::to_string(node) : "") +
             "\n";
  }
  state_.write("hosts", names);
}

/// unshare gets the signal when the test has ended: each process before it becomes the next.
std::vector<std::string> TestSlurm::at(int host, const std::vector<std::string>& words) const {
  std::vector<std::string> here = kAlone;
  here.insert(here.end(), {"sh", "-c", kBeHost, "sh", TestHosts::name(host), file("hosts")});
  here.insert(here.end(), {"env", "SLURM_CONF=" + file("slurm.conf")});
  here.insert(here.end(), words.begin(), words.end());
  std::vector<std::string> all{"setpriv", "--pdeathsig", "KILL"};
  const std::vector<std::string> there = hosts_.on(host, here);
  all.insert(all.end(), there.begin(), there.end());
  return all;
}

void TestSlurm::start(int host, const std::string& name, const std::vector<std::string>& words) {
  std::vector<std::string> logged{"sh", "-c", "exec \"$@\" >>\"$0\" 2>&1", file(name + ".out")};
  logged.insert(logged.end(), words.begin(), words.end());
  daemons_.push_back(std::make_unique<RunningCommand>(at(host, logged)));
}

std::vector<std::string> TestSlurm::call(const std::vector<std::string>& words) const {
  return at(0, words);
}

CommandResult TestSlurm::run(const std::vector<std::string>& words) const {
  return run_command(call(words), folder());
}

void TestSlurm::wait_for_nodes() const {
  std::string ready;
  for (int node = 0; node < nodes_; ++node) {
    ready += options_.node_prefix + std::to_string(node) + " idle\n";
  }
  CommandResult found;
  const auto are_idle = [&] {
    found = run({"sinfo", "--noheader", "--Node", "--format=%N %T"});
    return found.out == ready;
  };
  if (!eventually(are_idle, kStartLimit)) {
    throw std::runtime_error("Slurm does not start; sinfo: " + found.out + found.err + logs());
  }
}

std::string TestSlurm::logs() const {
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator(state_.path())) {
    if (entry.path().extension() == ".out") {
      text += "\n" + entry.path().filename().string() + ":\n" + read_text_file(entry.path());
    }
  }
  return text;
}

}  // namespace stagecraft::tests
