/// TestHosts: hosts of a test's own on this machine: network namespaces with names and addresses of
/// their own, joined by a bridge, in each an sshd that lets the test in.
///
///     host-0 10.77.0.1 ---+
///     host-1 10.77.0.2 ---+--- bridge, in a namespace of its own
///     host-2 10.77.0.3 ---+
///
/// They share this machine's files. Gone with the object, with every process in them. Made by root
/// alone. Thread: the test's own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {

class TestHosts {
 public:
  /// Why there can be none here; nothing: there can.
  [[nodiscard]] static std::optional<std::string> obstacle();

  /// Throws std::runtime_error, with what the system said.
  explicit TestHosts(int count);
  ~TestHosts();
  TestHosts(const TestHosts&) = delete;
  TestHosts& operator=(const TestHosts&) = delete;

  [[nodiscard]] int size() const { return count_; }
  [[nodiscard]] static std::string name(int host) { return "host-" + std::to_string(host); }
  [[nodiscard]] static std::string address(int host) {
    return "10.77.0." + std::to_string(host + 1);
  }
  /// "ssh -F FILE": reaches all of them by name.
  [[nodiscard]] std::string ssh() const { return "ssh -F " + folder_.path() + "/config"; }
  /// A file for `launch --hosts`, of the hosts from `first` on.
  [[nodiscard]] std::string file(int first, int slots = 1) const;
  [[nodiscard]] const std::string& folder() const { return folder_.path(); }

  /// The words that run `words` on a host.
  [[nodiscard]] std::vector<std::string> on(int host, const std::vector<std::string>& words) const;
  /// The same, and they see the host's name as their own machine's.
  [[nodiscard]] std::vector<std::string> named_on(int host,
                                                  const std::vector<std::string>& words) const;
  /// Ids of the processes on a host whose command line holds `text`.
  [[nodiscard]] std::vector<int> processes(int host, const std::string& text) const;

  /// This thread, and what it starts from now on, is on the host.
  void enter(int host) const { enter_space(space(host)); }

  /// The host's link goes down, or up again.
  void set_link(int host, bool up) const;
  /// One more interface of a host on the bridge, with an address such as "10.78.0.1/24".
  void add_interface(int host, const std::string& interface, const std::string& address) const;
  /// What names mean to programs that on() starts from now on: lines of an /etc/hosts.
  void set_names(int host, const std::string& lines) const;
  /// Hosts have addresses of IPv6 alone from now on, by which ssh() reaches them too.
  void change_to_ipv6() const;
  [[nodiscard]] static std::string address6(int host) {
    return "fd77::" + std::to_string(host + 1);
  }
  /// Nothing that one host sends reaches the other any more. Needs nft (Debian: nftables).
  void drop(int from, int to) const;
  /// All links are up, nothing is dropped any more, and the first host reaches the others.
  void heal() const;
  /// The host is gone, with whatever ran on it and without a word to anybody; or it is there again.
  void lose(int host) const;
  void restore(int host);

  /// Does this on the host, in a thread of its own, and waits for it. Rethrows what it throws.
  void at(int host, const std::function<void()>& work) const { work_at(space(host), work); }

  // For what listens in or stands between.
  /// The same where the bridge is, and the end of each host's link: port_of().
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
  std::string prefix_;  // of the names of namespaces: tests may run beside each other
  TemporaryFolder folder_;
};

}  // namespace stagecraft::tests
