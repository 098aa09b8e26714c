#include "stagecraft/tests/hosts/test_hosts.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <stdexcept>

#include <sched.h>

#include "stagecraft/actors/executor/device/processor.h"
#include "stagecraft/tests/support/eventually.h"

namespace stagecraft::tests {
namespace {

constexpr const char* kSshd = "/usr/sbin/sshd";

CommandResult run(const std::vector<std::string>& words) {
  return run_command(words);
}

void require(const std::vector<std::string>& words) {
  const CommandResult result = run(words);
  if (result.exit_code != 0) {
    std::string command;
    for (const std::string& word : words) {
      command += word + " ";
    }
    throw std::runtime_error(command + "failed: " + result.err + result.out);
  }
}

}  // namespace

std::optional<std::string> TestHosts::obstacle() {
  if (geteuid() != 0) {
    return "hosts of a test's own are made by root alone";
  }
  if (access(kSshd, X_OK) != 0) {
    return "there is no sshd: install openssh-server";
  }
  if (run({"sh", "-c", "command -v nft"}).exit_code != 0) {
    return "there is no nft: install nftables";
  }
  const std::string name = "sc-try-" + std::to_string(getpid());
  const CommandResult made = run({"ip", "netns", "add", name});
  if (made.exit_code != 0) {
    return "no network namespace can be made: " + made.err;
  }
  require({"ip", "netns", "delete", name});
  return std::nullopt;
}

TestHosts::TestHosts(int count)
    : count_(count), prefix_("sc" + std::to_string(getpid() % 100000) + "-") {
  mkdir("/run/sshd", 0755);  // sshd needs this folder
  for (const char* key : {"host_key", "user_key"}) {
    require({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder_.path() + "/" + key});
  }
  make_bridge();
  for (int host = 0; host < count_; ++host) {
    make_host(host);
    start_sshd(host, address(host));
  }
  write_ssh_config(&TestHosts::address);
}

TestHosts::~TestHosts() {
  for (int host = 0; host < count_; ++host) {
    end_processes(host);
    static_cast<void>(run({"ip", "netns", "delete", space(host)}));
    std::error_code ignored;  // most hosts have none
    std::filesystem::remove_all(names_folder(host), ignored);
  }
  static_cast<void>(run({"ip", "netns", "delete", prefix_ + "bridge"}));
}

/// Ends all processes except this one, which may be on a host too.
void TestHosts::end_processes(int host) const {
  for (const int process : processes(host, "")) {
    if (process != getpid()) {
      kill(process, SIGKILL);
    }
  }
}

std::string TestHosts::space(int host) const {
  return prefix_ + std::to_string(host);
}

void TestHosts::make_bridge() const {
  const std::string space = bridge();
  require({"ip", "netns", "add", space});
  require({"ip", "-n", space, "link", "add", "bridge", "type", "bridge"});
  require({"ip", "-n", space, "link", "set", "bridge", "up"});
}

void TestHosts::add_link(int host, const std::string& interface, const std::string& port) const {
  const std::string here = space(host), there = bridge();
  require({"ip",
           "-n",
           here,
           "link",
           "add",
           interface,
           "type",
           "veth",
           "peer",
           "name",
           port,
           "netns",
           there});
  require({"ip", "-n", there, "link", "set", port, "master", "bridge", "up"});
}

void TestHosts::make_host(int host) const {
  require({"ip", "netns", "add", space(host)});
  add_link(host, "eth0", port_of(host));
  require({"ip", "-n", space(host), "address", "add", address(host) + "/24", "dev", "eth0"});
  require({"ip", "-n", space(host), "link", "set", "eth0", "up"});
  require({"ip", "-n", space(host), "link", "set", "lo", "up"});
}

void TestHosts::start_sshd(int host, const std::string& address) const {
  // Hosts compute as this process does, because tests compare them with it.
  std::string processor;
  for (const std::string& variable : processor_of_this_process().variables) {
    processor += " " + variable;
  }
  const std::string config =
      folder_.write("sshd_config_" + std::to_string(host),
                    "ListenAddress " + address + "\nHostKey " + folder_.path() +
                        "/host_key\nAuthorizedKeysFile " + folder_.path() +
                        "/user_key.pub\nPermitRootLogin yes\nStrictModes no\nUsePAM no\n"
                        "PidFile none\nMaxStartups 10:100:10\n"  // no random refusals
                        // A shell that sshd starts would run the user's own start-up files, which
                        // may wait for locks that killed shells of tests have left.
                        "SetEnv HOME=" +
                        folder_.path() + processor + "\n");
  require(named_on(host, {kSshd, "-f", config}));
}

void TestHosts::write_ssh_config(std::string (*address_of)(int)) const {
  std::string config;
  for (int host = 0; host < count_; ++host) {
    config += "Host " + name(host) + "\n  HostName " + address_of(host) + "\n";
  }
  config += "Host *\n  User root\n  IdentityFile " + folder_.path() +
            "/user_key\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n"
            "  LogLevel ERROR\n";
  folder_.write("config", config);
}

std::string TestHosts::file(int first, int slots) const {
  std::string text;
  for (int host = first; host < count_; ++host) {
    text += name(host) + " addr=" + address(host) + " slots=" + std::to_string(slots) + "\n";
  }
  return folder_.write("hosts", text);
}

std::vector<std::string> TestHosts::on(int host, const std::vector<std::string>& words) const {
  std::vector<std::string> all{"ip", "netns", "exec", space(host)};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::vector<std::string> TestHosts::named_on(int host,
                                             const std::vector<std::string>& words) const {
  std::vector<std::string> all{
      "unshare", "--uts", "sh", "-c", "hostname " + name(host) + " && exec \"$@\"", "sh"};
  all.insert(all.end(), words.begin(), words.end());
  return on(host, all);
}

std::vector<int> TestHosts::processes(int host, const std::string& text) const {
  std::istringstream ids(run({"ip", "netns", "pids", space(host)}).out);
  std::vector<int> found;
  for (int id = 0; ids >> id;) {
    std::ostringstream line;  // stays empty if the process has just ended
    line << std::ifstream("/proc/" + std::to_string(id) + "/cmdline").rdbuf();
    if (text.empty() || line.str().find(text) != std::string::npos) {
      found.push_back(id);
    }
  }
  return found;
}

void TestHosts::set_link(int host, bool up) const {
  require({"ip", "-n", bridge(), "link", "set", port_of(host), up ? "up" : "down"});
}

void TestHosts::drop(int from, int to) const {
  require(on(to,
             {"nft",
              "add table ip faults; "
              "add chain ip faults input { type filter hook input priority 0; }; "
              "add rule ip faults input ip saddr " +
                  address(from) + " drop"}));
}

void TestHosts::heal() const {
  for (int host = 0; host < count_; ++host) {
    set_link(host, true);
    require(on(host, {"nft", "flush", "ruleset"}));
  }
  for (int host = 1; host < count_; ++host) {
    wait_for_way(0, host);
  }
}

/// The system brings a link up, and asks for neighbors again, some time after the command.
void TestHosts::wait_for_way(int from, int to) const {
  const std::vector<std::string> knock =
      on(from, {"timeout", "1", "bash", "-c", "exec 3<> /dev/tcp/" + address(to) + "/22"});
  CommandResult end;
  const auto reaches = [&] {
    end = run(knock);
    return end.exit_code == 0 || end.err.find("refused") != std::string::npos;
  };
  if (!eventually(reaches)) {
    throw std::runtime_error(name(from) + " does not reach " + name(to) + ": " + end.err);
  }
}

void TestHosts::lose(int host) const {
  set_link(host, false);  // first, so that ending processes cannot send a last message
  end_processes(host);
}

void TestHosts::restore(int host) {
  set_link(host, true);
  start_sshd(host, address(host));
}

void TestHosts::enter_space(const std::string& space) {
  const int there = open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
  if (there < 0 || setns(there, CLONE_NEWNET) != 0) {
    throw std::runtime_error("cannot go to " + space + ": " + std::strerror(errno));
  }
  close(there);
}

void TestHosts::work_at(const std::string& space, const std::function<void()>& work) {
  std::async(std::launch::async, [&] {
    enter_space(space);
    work();
  }).get();
}

void TestHosts::add_interface(int host,
                              const std::string& interface,
                              const std::string& address) const {
  add_link(host, interface, interface + "port" + std::to_string(host));
  require({"ip", "-n", space(host), "address", "add", address, "dev", interface});
  require({"ip", "-n", space(host), "link", "set", interface, "up"});
}

/// `ip netns exec` looks here for files that replace those of /etc.
std::string TestHosts::names_folder(int host) const {
  return "/etc/netns/" + space(host);
}

void TestHosts::set_names(int host, const std::string& lines) const {
  std::filesystem::create_directories(names_folder(host));
  std::ofstream(names_folder(host) + "/hosts") << lines;
}

void TestHosts::change_to_ipv6() const {
  for (int host = 0; host < count_; ++host) {
    const std::vector<std::string> ip{"ip", "-n", space(host)};
    const auto with = [&](std::vector<std::string> words) {
      words.insert(words.begin(), ip.begin(), ip.end());
      return words;
    };
    require(with({"-4", "address", "flush", "dev", "eth0"}));
    // Skips the wait for whether another host has the address.
    require(with({"address", "add", address6(host) + "/64", "dev", "eth0", "nodad"}));
    start_sshd(host, address6(host));
  }
  write_ssh_config(&TestHosts::address6);
}

}  // namespace stagecraft::tests
