/// Pods runs the Job of examples/kubernetes as its pods would run, each on a host of the test. It
/// uses the manifest's command and environment under the pod's host name, user and group, without
/// privileges, on a read-only root file system, with the credentials where and as the kubelet
/// mounts them. Kubernetes takes no part, so this does not show restarts of a pod.
///
/// The name service knows no pod until publish_names(). Thread: the test's own.
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
  /// Returns why this machine can have none; nothing if it can.
  [[nodiscard]] static std::optional<std::string> obstacle();

  /// Makes as many hosts as the Job has pods. `command`: the path of the stagecraft to run. Throws
  /// std::runtime_error if the system refuses or the manifests lack something.
  explicit Pods(const std::string& command);

  [[nodiscard]] int size() const { return hosts_.size(); }
  /// Publishes what the service says of every pod with an address; all pods have one.
  void publish_names() const;
  /// Starts a pod. Replaces `text` of its command unless it is empty, for example to make the run
  /// longer.
  [[nodiscard]] std::unique_ptr<RunningCommand> start(
      int index, const std::pair<std::string, std::string>& replaced = {}) const;

  /// Returns whether the manifest asks for what a pod gets here: no root, no privilege, no writing.
  [[nodiscard]] bool is_confined() const;
  /// Returns whether a container with this exit code fails the Job at once.
  [[nodiscard]] bool fails_job(int exit_code) const;

 private:
  [[nodiscard]] std::string name(int index) const;
  [[nodiscard]] std::vector<std::string> environment(int index) const;
  [[nodiscard]] std::string mount_point() const;
  void make_secrets() const;

  const nlohmann::json job_, service_;
  const nlohmann::json& pod_;        ///< of the Job's template
  const nlohmann::json& container_;  ///< the only container
  const std::string command_;
  const TestHosts hosts_;
};

}  // namespace stagecraft::tests
