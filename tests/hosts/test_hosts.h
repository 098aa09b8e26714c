/// TestHosts makes hosts for a test on this machine: network namespaces with their own names and
/// addresses, joined by a bridge, each with an sshd that lets the test in.
///
///     host-0 10.77.0.1 ---+
///     host-1 10.77.0.2 ---+--- bridge, in a namespace of its own
///     host-2 10.77.0.3 ---+
///
/// They share this machine's files. They end with the object, with every process in them. Only root
/// can make them. Thread: the test's own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {

class TestHosts {
 public:
  /// Returns why this machine can have none; nothing if it can.
  [[nodiscard]] static std::optional<std::string> obstacle();

  /// Throws std::runtime_error with the system's message.
  explicit TestHosts(int count);
  ~TestHosts();
  TestHosts(const TestHosts&) = delete;
  TestHosts& operator=(const TestHosts&) = delete;

  [[nodiscard]] int size() const { return count_; }
  [[nodiscard]] static std::string name(int host) { return "host-" + std::to_string(host); }
  [[nodiscard]] static std::string address(int host) {
    return "10.77.0." + std::to_string(host + 1);
  }
  /// Returns "ssh -F FILE", which reaches all of them by name.
  [[nodiscard]] std::string ssh() const { return "ssh -F " + folder_.path() + "/config"; }
  /// Returns a file for `launch --hosts`, of the hosts from `first` on.
  [[nodiscard]] std::string file(int first, int slots = 1) const;
  [[nodiscard]] const std::string& folder() const { return folder_.path(); }

  /// Returns the words that run `words` on a host.
  [[nodiscard]] std::vector<std::string> on(int host, const std::vector<std::string>& words) const;
  /// Returns the same; the program sees the host's name as its own machine's.
  [[nodiscard]] std::vector<std::string> named_on(int host,
                                                  const std::vector<std::string>& words) const;
  /// Returns ids of the processes on a host whose command line holds `text`.
  [[nodiscard]] std::vector<int> processes(int host, const std::string& text) const;

  /// Moves this thread, and processes it starts from now on, to the host.
  void enter(int host) const { enter_space(space(host)); }

  /// Takes the host's link down, or up again.
  void set_link(int host, bool up) const;
  /// Adds an interface to a host on the bridge, with an address such as "10.78.0.1/24".
  void add_interface(int host, const std::string& interface, const std::string& address) const;
  /// Sets the names that programs started by on() see from now on: lines of an /etc/hosts.
  void set_names(int host, const std::string& lines) const;
  /// Gives hosts addresses of IPv6 alone from now on; ssh() reaches them by these too.
  void change_to_ipv6() const;
  [[nodiscard]] static std::string address6(int host) {
    return "fd77::" + std::to_string(host + 1);
  }
  /// Drops everything that one host sends to the other. Needs nft (Debian: nftables).
  void drop(int from, int to) const;
  /// Takes all links up, stops dropping, and waits until the first host reaches the others.
  void heal() const;
  /// Removes the host with all processes on it, without a message to any other; or brings it back.
  void lose(int host) const;
  void restore(int host);

  /// Runs this on the host, in a thread of its own, and waits for it. Rethrows its exception.
  void at(int host, const std::function<void()>& work) const { work_at(space(host), work); }

  // Used by code that listens in or stands between.
  /// Does the same at the bridge, where each host's link ends: port_of().
  void at_bridge(const std::function<void()>& work) const { work_at(bridge(), work); }
  [[nodiscard]] static std::string port_of(int host) { return "port" + std::to_string(host); }
  [[nodiscard]] std::string bridge() const { return prefix_ + "bridge"; }

 private:
  [[nodiscard]] std::string space(int host) const;
  static void enter_space(const std::string& space);
  static void work_at(const std::string& space, const std::function<void()>& work);
  void make_bridge() const;
  void make_host(int host) const;
  void add_link(int host, const std::string& interface, const std::string& port) const;
  void start_sshd(int host, const std::string& address) const;
  void write_ssh_config(std::string (*address_of)(int)) const;
  [[nodiscard]] std::string names_folder(int host) const;
  void end_processes(int host) const;
  void wait_for_way(int from, int to) const;

  int count_;
  std::string prefix_;  // part of the namespaces' names: tests may run side by side
  TemporaryFolder folder_;
};

}  // namespace stagecraft::tests
