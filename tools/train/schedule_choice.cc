#include "stagecraft/tools/train/schedule_choice.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/render/terminal.h"
#include "stagecraft/scheduler/stage_graph.h"
#include "stagecraft/scheduler/validate.h"
#include "stagecraft/base/nearest.h"

namespace stagecraft::tools {
namespace {

constexpr int kDefaultStages = 4;
constexpr int kDefaultMicrobatches = 8;

using Builder = std::function<Schedule(const StageGraph&, int)>;

const std::map<std::string, Builder>& builders() {
  static const std::map<std::string, Builder> all{
      {"1f1b", [](const StageGraph& graph, int m) { return one_f_one_b(graph, m); }},
      {"gpipe", [](const StageGraph& graph, int m) { return gpipe(graph, m); }},
  };
  return all;
}

std::string read_file(const std::string& path) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!std::filesystem::exists(path, ignored) || std::filesystem::is_directory(path, ignored) ||
      !file) {
    const bool looks_like_a_name = path.find_first_of("/.") == std::string::npos;
    throw Error(
        looks_like_a_name ? Errc::UsageArgument : Errc::UsageFile,
        fmt::format("--schedule expects gpipe, 1f1b or a readable schedule file, found '{}'; {}"
                    "see stagecraft train --help",
                    path,
                    did_you_mean(path, {"1f1b", "gpipe"})));
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void check_stages(int stages, const TrainOptions& options) {
  if (stages > options.layers) {
    throw Error(
        Errc::UsageArgument,
        fmt::format(
            "--stages expects at most --layers {} (a stage holds at least one layer), found {}; "
            "give fewer stages or more layers",
            options.layers,
            stages));
  }
}

void check_flag(const char* flag,
                std::optional<std::int64_t> given,
                int fixed,
                const std::string& file) {
  if (given && *given != fixed) {
    throw Error(
        Errc::UsageArgument,
        fmt::format(
            "{} expects {}, as the schedule file '{}' fixes it, found {}; leave {} out or change "
            "the file",
            flag,
            fixed,
            file,
            *given,
            flag));
  }
}

/// Throws with the grid on which every violation is marked and told below. Keeps S-1.
void check_rules(const ScheduleChoice& choice, const std::string& name) {
  const std::vector<Violation> violations = validate(
      choice.schedule, StageGraph::chain(choice.stages), {.microbatches = choice.microbatches});
  if (violations.empty()) {
    return;
  }
  std::string grid = render(choice.schedule, violations);
  grid.erase(grid.find_last_not_of('\n') + 1);
  throw Error(Errc::ScheduleInvalid,
              fmt::format("the schedule '{}' breaks {} rule{}; mend it and run again\n\n{}",
                          name,
                          violations.size(),
                          violations.size() == 1 ? "" : "s",
                          grid));
}

ScheduleChoice from_file(const TrainOptions& options) {
  const std::string& file = options.schedule;
  Schedule schedule = [&] {
    try {
      return Schedule::parse(read_file(file));
    } catch (const Error& error) {
      if (error.code() != Errc::ScheduleParse) {
        throw;
      }
      throw Error(Errc::ScheduleParse,
                  fmt::format("the schedule file '{}': {}", file, error.message()));
    }
  }();
  ScheduleChoice choice{schedule, schedule.stages(), schedule.microbatches()};
  if (choice.stages < 1 || choice.microbatches < 1) {
    throw Error(
        Errc::ScheduleParse,
        fmt::format(
            "the schedule file '{}' expects rows of cells such as 0F0, found none; see README.md",
            file));
  }
  if (!schedule.stage_graph().is_chain()) {
    throw Error(
        Errc::UsageArgument,
        fmt::format(
            "a Llama's stages are one chain, the schedule file '{}' names other edges; leave its "
            "@edges and @replicas out",
            file));
  }
  check_flag("--stages", options.stages, choice.stages, file);
  check_flag("--microbatches", options.microbatches, choice.microbatches, file);
  return choice;
}

}  // namespace

ScheduleChoice choose_schedule(const TrainOptions& options) {
  const auto builder = builders().find(options.schedule);
  if (builder == builders().end()) {
    ScheduleChoice choice = from_file(options);
    check_stages(choice.stages, options);
    check_rules(choice, options.schedule);
    return choice;
  }
  const int stages = static_cast<int>(options.stages.value_or(kDefaultStages));
  const int microbatches = static_cast<int>(options.microbatches.value_or(kDefaultMicrobatches));
  check_stages(stages, options);
  ScheduleChoice choice{
      builder->second(StageGraph::chain(stages), microbatches), stages, microbatches};
  check_rules(choice, options.schedule);
  return choice;
}

}  // namespace stagecraft::tools
