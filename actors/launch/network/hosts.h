/// Host is another machine on which workers of a cluster run. read_hosts reads a file of them.
///
///     # name    places for workers, the address by which others reach it, its environment
///     node-a    slots=2
///     node-b    slots=4 addr=10.0.0.2 worker=/opt/stagecraft/bin/stagecraft OMP_NUM_THREADS=1
///
/// ssh gets the name. Pure, except for reading the file; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft {

struct Host {
  std::string name;     ///< as ssh takes it: a name, "user@name", or one of ~/.ssh/config
  int slots = 1;        ///< worker processes on it
  std::string address;  ///< by which others reach it; empty: that from which it reaches the driver
  std::string worker;   ///< the worker program there; empty: the same path as here
  std::vector<std::pair<std::string, std::string>> environment;  ///< of its workers

  friend bool operator==(const Host&, const Host&) = default;
};

/// Reads the hosts.
/// Errors: UsageFile, naming the line, for a line that is no host, for a name that occurs twice, or
/// if there is no host. `where`: names the file in messages.
[[nodiscard]] std::vector<Host> parse_hosts(std::string_view text, const std::string& where);

/// Reads the file. Errors: UsageFile for a file that cannot be read; those of parse_hosts.
[[nodiscard]] std::vector<Host> read_hosts(const std::string& path);

/// Returns the host of a place. Places fill the hosts one after the other, each up to its slots.
/// Null if there are fewer places.
[[nodiscard]] const Host* host_of_place(const std::vector<Host>& hosts, int place);

[[nodiscard]] int slots_of(const std::vector<Host>& hosts);

}  // namespace stagecraft
