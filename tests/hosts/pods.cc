#include "stagecraft/tests/hosts/pods.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>

#include "stagecraft/actors/executor/device/processor.h"

namespace stagecraft::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kManifests = STAGECRAFT_SOURCE_DIR "/examples/kubernetes/";
constexpr const char* kYq = "/usr/bin/yq";
constexpr int kGroupReads = 0440;  // fsGroup adds this to the mode of a mounted file

/// Makes this host a pod, then runs the words after "--" as the pod's user. The user keeps one
/// privilege, reading, because LibTorch may lie where only this machine's root may look.
constexpr const char* kPod = R"sh(
set -e
hostname "$POD_NAME"
mount --bind "$POD_HOSTS" /etc/hosts
mount -t tmpfs -o mode=0755 tmpfs "/$(echo "$POD_MOUNT" | cut -d/ -f2)"
mkdir -p "$POD_MOUNT"
mount --bind "$POD_SECRETS" "$POD_MOUNT"
mount -o remount,bind,ro /
exec setpriv --reuid "$POD_USER" --regid "$POD_GROUP" --groups "$POD_FS_GROUP" --no-new-privs \
  --inh-caps=-all,+dac_read_search --ambient-caps=-all,+dac_read_search \
  --bounding-set=-all,+dac_read_search "$@"
)sh";

json manifest(const std::string& name) {
  const CommandResult read = run_command({kYq, ".", kManifests + name});
  if (read.exit_code != 0) {
    throw std::runtime_error(name + " is no YAML: " + read.err);
  }
  return json::parse(read.out);
}

void require(int result, const std::string& path) {
  if (result != 0) {
    throw std::runtime_error(path + " cannot be made what it has to be");
  }
}

}  // namespace

std::optional<std::string> Pods::obstacle() {
  if (access(kYq, X_OK) != 0) {
    return "there is no yq to read manifests with: run tools/setup";
  }
  return TestHosts::obstacle();
}

Pods::Pods(const std::string& command)
    : job_(manifest("job.yaml")),
      service_(manifest("service.yaml")),
      pod_(job_.at("spec").at("template").at("spec")),
      container_(pod_.at("containers").at(0)),
      command_(command),
      hosts_(job_.at("spec").at("completions").get<int>()) {
  std::ofstream(hosts_.folder() + "/names") << "127.0.0.1 localhost\n";
  make_secrets();
}

std::string Pods::name(int index) const {
  return fmt::format("{}-{}", job_.at("metadata").at("name").get<std::string>(), index);
}

void Pods::publish_names() const {
  const auto service = service_.at("metadata").at("name").get<std::string>();
  if (pod_.at("subdomain") != service || service_.at("spec").at("clusterIP") != "None" ||
      service_.at("spec").at("selector").at("batch.kubernetes.io/job-name") !=
          job_.at("metadata").at("name")) {
    throw std::runtime_error("the service is not one that names the pods of the Job");
  }
  std::ofstream names(hosts_.folder() + "/names", std::ios::app);
  for (int index = 0; index < size(); ++index) {
    names << fmt::format(
        "{} {}.{} {}\n", TestHosts::address(index), name(index), service, name(index));
  }
}

std::string Pods::mount_point() const {
  return container_.at("volumeMounts").at(0).at("mountPath").get<std::string>();
}

/// Keeps the members' files as `kubectl create secret --from-file` does, and mounts them as the
/// kubelet does: whole folders behind a link, owned by root and by the pod's group (fsGroup).
void Pods::make_secrets() const {
  const std::string cluster = hosts_.folder() + "/cluster", all = hosts_.folder() + "/secrets";
  const json& projected = pod_.at("volumes").at(0).at("projected");
  const json& sources = projected.at("sources");
  const CommandResult made = run_command(
      {command_, "credentials", "make", cluster, "--workers", std::to_string(sources.size() - 1)});
  if (made.exit_code != 0) {
    throw std::runtime_error("no credentials: " + made.err);
  }
  const auto group = pod_.at("securityContext").at("fsGroup").get<gid_t>();
  const mode_t mode = projected.at("defaultMode").get<mode_t>() | kGroupReads;
  const std::string prefix = job_.at("metadata").at("name").get<std::string>() + "-";
  fs::create_directories(all + "/..first");
  fs::create_symlink("..first", all + "/..data");
  for (const json& source : sources) {
    const auto secret = source.at("secret").at("name").get<std::string>();
    const std::string member = cluster + "/" + secret.substr(prefix.size());
    for (const json& item : source.at("secret").at("items")) {
      const fs::path path = item.at("path").get<std::string>();
      const fs::path file = fs::path(all) / "..first" / path;
      fs::create_directories(file.parent_path());
      fs::copy_file(member + "/" + item.at("key").get<std::string>(), file);
      require(chown(file.c_str(), 0, group) | chmod(file.c_str(), mode), file);
      const fs::path link = fs::path(all) / *path.begin();
      if (!fs::is_symlink(link)) {
        fs::create_symlink(fs::path("..data") / *path.begin(), link);
      }
    }
  }
  require(chmod(all.c_str(), 01777), all);
}

std::vector<std::string> Pods::environment(int index) const {
  std::vector<std::string> all{
      fmt::format("JOB_COMPLETION_INDEX={}", index),
      fmt::format("PATH={}:/usr/bin:/bin", fs::path(command_).parent_path().string())};
  for (const std::string& variable : processor_of_this_process().variables) {
    all.push_back(variable);  // pods compute as this process does
  }
  for (const json& variable : container_.at("env")) {
    std::string value;
    if (variable.contains("value")) {
      value = variable.at("value");
    } else if (variable.at("valueFrom").at("fieldRef").at("fieldPath") == "status.podIP") {
      value = TestHosts::address(index);
    } else {
      throw std::runtime_error("a variable of the Job has its value from where no test does");
    }
    all.push_back(variable.at("name").get<std::string>() + "=" + value);
  }
  return all;
}

std::unique_ptr<RunningCommand> Pods::start(
    int index, const std::pair<std::string, std::string>& replaced) const {
  const json& user = pod_.at("securityContext");
  std::vector<std::string> words{"env",
                                 "POD_NAME=" + name(index),
                                 "POD_HOSTS=" + hosts_.folder() + "/names",
                                 "POD_SECRETS=" + hosts_.folder() + "/secrets",
                                 "POD_MOUNT=" + mount_point(),
                                 fmt::format("POD_USER={}", user.at("runAsUser").get<int>()),
                                 fmt::format("POD_GROUP={}", user.at("runAsGroup").get<int>()),
                                 fmt::format("POD_FS_GROUP={}", user.at("fsGroup").get<int>()),
                                 "unshare",
                                 "--uts",
                                 "sh",
                                 "-c",
                                 kPod,
                                 "pod",
                                 "env",
                                 "-i"};
  const auto add = [&words](const auto& more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  add(environment(index));
  add(container_.at("command").get<std::vector<std::string>>());
  auto script = container_.at("args").at(0).get<std::string>();
  if (!replaced.first.empty()) {
    script.replace(script.find(replaced.first), replaced.first.size(), replaced.second);
  }
  words.push_back(script);
  return std::make_unique<RunningCommand>(hosts_.on(index, words));
}

bool Pods::is_confined() const {
  const json& confined = container_.at("securityContext");
  return pod_.at("securityContext").at("runAsNonRoot") == true &&
         confined.at("allowPrivilegeEscalation") == false &&
         confined.at("readOnlyRootFilesystem") == true &&
         confined.at("capabilities") == json{{"drop", {"ALL"}}};
}

bool Pods::fails_job(int exit_code) const {
  for (const json& rule : job_.at("spec").at("podFailurePolicy").at("rules")) {
    if (rule.at("action") == "FailJob" &&
        rule.at("onExitCodes").at("containerName") == container_.at("name")) {
      for (const json& value : rule.at("onExitCodes").at("values")) {
        if (value == exit_code) {
          return true;
        }
      }
    }
  }
  return false;
}

}  // namespace stagecraft::tests
