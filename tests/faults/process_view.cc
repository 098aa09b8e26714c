#include "stagecraft/tests/faults/process_view.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <fmt/format.h>

namespace stagecraft::tests {
namespace {

namespace fs = std::filesystem;

/// Returns "socket:[4711]" for every socket of the process.
std::set<std::string> sockets_of(pid_t process) {
  std::set<std::string> sockets;
  std::error_code gone;
  for (const auto& file : fs::directory_iterator(fmt::format("/proc/{}/fd", process), gone)) {
    const std::string target = fs::read_symlink(file.path(), gone).string();
    if (target.starts_with("socket:")) {
      sockets.insert(target);
    }
  }
  return sockets;
}

void set_address_limit(pid_t process, rlim_t bytes) {
  rlimit limit{};
  if (prlimit(process, RLIMIT_AS, nullptr, &limit) == 0) {
    limit.rlim_cur = std::min(bytes, limit.rlim_max);
    static_cast<void>(prlimit(process, RLIMIT_AS, &limit, nullptr));
  }
}

}  // namespace

bool is_running(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');  // the name may contain any character
  return name_end != std::string::npos && name_end + 2 < line.size() && line[name_end + 2] != 'Z' &&
         line[name_end + 2] != 'X';
}

std::vector<std::uint16_t> listening_ports(pid_t process) {
  constexpr const char* kListening = "0A";
  const std::set<std::string> sockets = sockets_of(process);
  std::set<std::uint16_t> ports;
  std::ifstream file(fmt::format("/proc/{}/net/tcp", process));
  std::string line, slot, local, remote, state, queues, timer, retries, user, wait, inode;
  std::getline(file, line);  // the headings
  while (file >> slot >> local >> remote >> state >> queues >> timer >> retries >> user >> wait >>
         inode) {
    std::getline(file, line);
    if (state == kListening && sockets.contains(fmt::format("socket:[{}]", inode))) {
      const std::string port = local.substr(local.find(':') + 1);
      ports.insert(static_cast<std::uint16_t>(std::stoul(port, nullptr, 16)));
    }
  }
  return {ports.begin(), ports.end()};
}

std::uint64_t address_space(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/statm", process));
  std::uint64_t pages = 0;
  file >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void limit_address_space(pid_t process, std::uint64_t bytes) {
  set_address_limit(process, bytes);
}

void lift_address_limit(pid_t process) {
  set_address_limit(process, RLIM_INFINITY);
}

}  // namespace stagecraft::tests
