/// Pods: the Job of examples/kubernetes run as its pods would be, each on a host of the test's own:
/// the manifest's very command with its environment, under its host name, its user and group,
/// without privileges, on a root file system that cannot be written to, with the credentials where
/// and as the kubelet mounts them. No Kubernetes takes part: who starts a pod again, and when, is
/// not shown here.
///
/// The name service knows nobody until publish_names(). Thread: the test's own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/hosts/test_hosts.h"

namespace stagecraft::tests {

class Pods {
 public:
  /// Why there can be none here; nothing: there can.
  [[nodiscard]] static std::optional<std::string> obstacle();

  /// As many hosts as the Job has pods. `command`: the stagecraft to run, by its path.
  /// Throws std::runtime_error for what the system refuses or the manifests do not have.
  explicit Pods(const std::string& command);

  [[nodiscard]] int size() const { return hosts_.size(); }
  /// What the service says of every pod that has an address, which is of all.
  void publish_names() const;
  /// Starts a pod. `text` of its command is replaced where it is not empty, so that the run takes
  /// longer, say.
  [[nodiscard]] std::unique_ptr<RunningCommand> start(
      int index, const std::pair<std::string, std::string>& replaced = {}) const;

  /// Whether the manifest asks for what a pod gets here: no root, no privilege, no writing.
  [[nodiscard]] bool is_confined() const;
  /// Whether a container that ends so fails the Job at once.
  [[nodiscard]] bool fails_job(int exit_code) const;

 private:
  [[nodiscard]] std::string name(int index) const;
  [[nodiscard]] std::vector<std::string> environment(int index) const;
  [[nodiscard]] std::string mount_point() const;
  void make_secrets() const;

  const nlohmann::json job_, service_;
  const nlohmann::json& pod_;        ///< of the Job's template
  const nlohmann::json& container_;  ///< the only one
  const std::string command_;
  const TestHosts hosts_;
};

}  // namespace stagecraft::tests
