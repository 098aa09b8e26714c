#include "stagecraft/actors/launch/ways/ssh.h"

#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/launch/ways/place_hosts.h"
#include "stagecraft/actors/launch/ways/started_worker.h"
#include "stagecraft/actors/security/temporary_credentials.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/shell_word.h"

namespace stagecraft {
namespace {

class WorkersBySsh final : public WorkerWay {
 public:
  explicit WorkersBySsh(const SpawnOptions& options)
      : options_(options),
        usual_(find_worker_program(options.program)),
        hosts_(options.hosts, options.spares) {}

  [[nodiscard]] bool starts_workers() const override { return true; }
  [[nodiscard]] bool is_elsewhere() const override { return true; }

  void require_places(int places) const override {
    if (places > slots_of(options_.hosts)) {
      throw Error(Errc::UsageArgument,
                  fmt::format("{} worker processes are needed, and the hosts have places for {}: "
                              "give them more slots, or name more hosts",
                              places,
                              slots_of(options_.hosts)));
    }
    hosts_.use(places);
  }

  [[nodiscard]] ChildProgram program(WorkerProcessOptions join,
                                     std::function<void()> on_let_in) const override {
    const Host host = hosts_.host_of(join.place).value();
    const WorkerProgram worker = host.worker.empty() ? usual_ : worker_program_at(host.worker);
    const std::string folder = std::exchange(join.credentials, kCredentialsFromLifeline);
    join.bind = host.address;
    std::vector<std::string> words = joining_words(worker, join);
    words.insert(words.begin(), worker.path);
    ChildProgram child = ssh_worker(options_.ssh, host, words);
    child.input = text_of_member(folder);
    child.on_line = [output = output_of_worker(options_, join, host.name),
                     on_let_in = std::move(on_let_in)](std::string_view line) {
      line.ends_with(kLetInBySsh) ? on_let_in() : output(line);
    };
    return child;
  }

  [[nodiscard]] std::vector<int> turns(std::span<const StartState> places) const override {
    return start_turns(options_.hosts, places);
  }

  [[nodiscard]] std::string host_text(int place, const std::string&) const override {
    const std::optional<Host> host = hosts_.host_of(place);
    return host ? " on " + host->name : "";
  }

  [[nodiscard]] std::string end_text(int place, const std::string& end) const override {
    const std::optional<Host> host = hosts_.host_of(place);
    return host ? end_behind_ssh(end, host->name) : end;
  }

  std::optional<std::string> prepare(int place) const override { return hosts_.prepare(place); }
  [[nodiscard]] bool give_up(int place) const override { return hosts_.give_up(place); }

  [[nodiscard]] std::string late_advice(const WorkerProcessOptions&) const override {
    return "does the worker program call worker_main?";
  }

 private:
  const SpawnOptions options_;
  const WorkerProgram usual_;  ///< of hosts whose lines name none
  mutable PlaceHosts hosts_;   ///< has a lock of its own
};

}  // namespace

std::unique_ptr<const WorkerWay> workers_by_ssh(const SpawnOptions& options) {
  return std::make_unique<WorkersBySsh>(options);
}

ChildProgram ssh_worker(const std::vector<std::string>& ssh,
                        const Host& host,
                        const std::vector<std::string>& program) {
  std::vector<std::string> words = ssh;
  const std::string path = words.empty() ? "ssh" : words.front();
  if (!words.empty()) {
    words.erase(words.begin());
  }
  words.insert(words.begin(), {"-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"});
  std::string command = fmt::format("echo {}; env", shell_word(kLetInBySsh));
  for (const auto& [name, value] : host.environment) {
    command += fmt::format(" {}={}", name, shell_word(value));
  }
  for (const std::string& word : program) {
    command += " " + shell_word(word);
  }
  // The shell stays until the end, so that a signal becomes a status, which ssh passes on.
  command += "; exit $?";
  words.insert(words.end(), {host.name, command});
  return {.path = path, .arguments = std::move(words), .input = {}, .on_line = {}};
}

std::string end_behind_ssh(const std::string& end, const std::string& host) {
  constexpr std::string_view kStatus = "ended with exit status ";
  constexpr int kOfSsh = 255, kSignals = 128;
  int status = 0;
  if (!end.starts_with(kStatus) ||
      std::from_chars(end.data() + kStatus.size(), end.data() + end.size(), status).ec !=
          std::errc{}) {
    return fmt::format("is out of reach: the ssh to {} {}", host, end);
  }
  if (status == kOfSsh) {
    return fmt::format("is out of reach: ssh could not connect to {}, or lost it", host);
  }
  if (status > kSignals) {
    return fmt::format(
        "was killed by signal {} ({})", status - kSignals, strsignal(status - kSignals));
  }
  return end;
}

}  // namespace stagecraft
