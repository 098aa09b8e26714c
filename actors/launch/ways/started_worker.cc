#include "stagecraft/actors/launch/ways/started_worker.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/actors/launch/ways/rank_processes.h"
#include "stagecraft/actors/launch/ways/worker_output.h"

namespace stagecraft {
namespace {

/// Returns the file of a place's worker; empty if no logs are kept.
std::string log_file(const SpawnOptions& options, int place, std::int64_t incarnation) {
  if (options.log_dir.empty()) {
    return {};
  }
  std::string name = ranks_text(options, place);
  std::ranges::replace(name, ' ', '-');
  if (incarnation > 0) {
    name += fmt::format("-incarnation-{}", incarnation);
  }
  return options.log_dir + "/" + name + ".log";
}

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

}  // namespace

std::vector<std::string> joining_words(const WorkerProgram& program,
                                       const WorkerProcessOptions& join) {
  std::vector<std::string> words = program.arguments;
  for (std::string& word : worker_arguments(join)) {
    words.push_back(std::move(word));
  }
  return words;
}

std::function<void(std::string_view line)> output_of_worker(const SpawnOptions& options,
                                                            const WorkerProcessOptions& join,
                                                            const std::string& host) {
  const std::string ranks = ranks_text(options, join.place);
  return [output = WorkerOutput(host.empty() ? ranks : ranks + " " + host,
                                log_file(options, join.place, join.incarnation))](
             std::string_view line) { output.line(line); };
}

void note_in_log(const SpawnOptions& options,
                 int place,
                 std::int64_t incarnation,
                 const std::string& what) {
  const std::string ranks = ranks_text(options, place);
  if (const std::string file = log_file(options, place, incarnation); !file.empty()) {
    std::error_code ignored;  // workers that come by themselves have no WorkerOutput to make it
    std::filesystem::create_directories(options.log_dir, ignored);
    std::ofstream(file, std::ios::app)
        << fmt::format("{} driver: {} {}\n", time_text(), ranks, what) << std::flush;
  }
}

std::string log_of(const SpawnOptions& options, Rank rank, std::int64_t incarnation) {
  return lives_elsewhere(options, rank) ? log_file(options, place_in(options, rank), incarnation)
                                        : "";
}

}  // namespace stagecraft
