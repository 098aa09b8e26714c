#include "stagecraft/tests/hosts/test_hosts.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

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
  mkdir("/run/sshd", 0755);  // where it is not yet, sshd asks for it
  for (const char* key : {"host_key", "user_key"}) {
    require({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder_.path() + "/" + key});
  }
  make_bridge();
  for (int host = 0; host < count_; ++host) {
    make_host(host);
    start_sshd(host);
  }
  std::string config;
  for (int host = 0; host < count_; ++host) {
    config += "Host " + name(host) + "\n  HostName " + address(host) + "\n";
  }
  config += "Host *\n  User root\n  IdentityFile " + folder_.path() +
            "/user_key\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n"
            "  LogLevel ERROR\n";
  folder_.write("config", config);
}

TestHosts::~TestHosts() {
  for (int host = 0; host < count_; ++host) {
    for (const int process : processes(host, "")) {
      kill(process, SIGKILL);
    }
    static_cast<void>(run({"ip", "netns", "delete", space(host)}));
  }
  static_cast<void>(run({"ip", "netns", "delete", prefix_ + "bridge"}));
}

std::string TestHosts::space(int host) const {
  return prefix_ + std::to_string(host);
}

void TestHosts::make_bridge() const {
  const std::string space = prefix_ + "bridge";
  require({"ip", "netns", "add", space});
  require({"ip", "-n", space, "link", "add", "bridge", "type", "bridge"});
  require({"ip", "-n", space, "link", "set", "bridge", "up"});
}

void TestHosts::make_host(int host) const {
  const std::string here = space(host), there = prefix_ + "bridge";
  const std::string port = "port" + std::to_string(host);
  require({"ip", "netns", "add", here});
  require({"ip",
           "-n",
           here,
           "link",
           "add",
           "eth0",
           "type",
           "veth",
           "peer",
           "name",
           port,
           "netns",
           there});
  require({"ip", "-n", there, "link", "set", port, "master", "bridge", "up"});
  require({"ip", "-n", here, "address", "add", address(host) + "/24", "dev", "eth0"});
  require({"ip", "-n", here, "link", "set", "eth0", "up"});
  require({"ip", "-n", here, "link", "set", "lo", "up"});
}

void TestHosts::start_sshd(int host) {
  const std::string config =
      folder_.write("sshd_config_" + std::to_string(host),
                    "ListenAddress " + address(host) + "\nHostKey " + folder_.path() +
                        "/host_key\nAuthorizedKeysFile " + folder_.path() +
                        "/user_key.pub\nPermitRootLogin yes\nStrictModes no\nUsePAM no\n"
                        "PidFile none\nMaxStartups 100\n");
  require(on(host,
             {"unshare",
              "--uts",
              "sh",
              "-c",
              "hostname " + name(host) + " && exec " + kSshd + " -f " + config}));
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

std::vector<int> TestHosts::processes(int host, const std::string& text) const {
  std::istringstream ids(run({"ip", "netns", "pids", space(host)}).out);
  std::vector<int> found;
  for (int id = 0; ids >> id;) {
    std::ostringstream line;  // stays empty where the process has just gone
    line << std::ifstream("/proc/" + std::to_string(id) + "/cmdline").rdbuf();
    if (text.empty() || line.str().find(text) != std::string::npos) {
      found.push_back(id);
    }
  }
  return found;
}

void TestHosts::set_link(int host, bool up) const {
  require({"ip",
           "-n",
           prefix_ + "bridge",
           "link",
           "set",
           "port" + std::to_string(host),
           up ? "up" : "down"});
}

}  // namespace stagecraft::tests
