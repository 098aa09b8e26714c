#include "stagecraft/actors/launch/fleet/place_program.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/actors/launch/fleet/place_text.h"
#include "stagecraft/actors/launch/ways/ssh.h"
#include "stagecraft/actors/launch/ways/worker_output.h"
#include "stagecraft/actors/security/temporary_credentials.h"

namespace stagecraft {
namespace {

/// Returns "DIR/rank-2.log"; empty if no logs are kept.
std::string log_file(const SpawnOptions& options, std::string ranks) {
  if (options.log_dir.empty()) {
    return {};
  }
  std::ranges::replace(ranks, ' ', '-');
  return options.log_dir + "/" + ranks + ".log";
}

}  // namespace

ChildProgram place_program(const SpawnOptions& options,
                           const WorkerProgram& usual,
                           WorkerProcessOptions join,
                           std::function<void()> on_let_in) {
  const Host* host = host_of_place(options.hosts, join.place);
  const bool is_named = host != nullptr && !host->worker.empty();
  const WorkerProgram program = is_named ? worker_program_at(host->worker) : usual;
  const std::string folder = join.credentials;
  join.lifeline = kLifeline;
  join.bind = join.host;
  join.heartbeat = {.interval = options.heartbeat, .silence = options.silence};
  join.patience = options.join_deadline;
  if (host != nullptr) {
    join.credentials = std::string(kCredentialsFromLifeline);
    join.bind = host->address;
  }
  std::vector<std::string> words = program.arguments;
  for (std::string& word : worker_arguments(join)) {
    words.push_back(std::move(word));
  }
  ChildProgram child{.path = program.path, .arguments = words, .input = {}, .on_line = {}};
  if (host != nullptr) {
    words.insert(words.begin(), program.path);
    child = ssh_worker(options.ssh, *host, words);
    child.input = text_of_member(folder);
  }
  if (host != nullptr || !options.log_dir.empty()) {
    const std::string ranks = ranks_text(options, join.place);
    child.on_line = [output = WorkerOutput(host == nullptr ? ranks : ranks + " " + host->name,
                                           log_file(options, ranks)),
                     on_let_in = std::move(on_let_in)](std::string_view line) {
      line.ends_with(kLetInBySsh) ? on_let_in() : output.line(line);
    };
  }
  return child;
}

}  // namespace stagecraft
