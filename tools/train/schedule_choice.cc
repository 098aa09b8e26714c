#include "stagecraft/tools/train/schedule_choice.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/registry.h"
#include "stagecraft/scheduler/render/terminal.h"
#include "stagecraft/scheduler/stage_graph.h"
#include "stagecraft/scheduler/validate.h"
#include "stagecraft/tools/schedule/input.h"

namespace stagecraft::tools {
namespace {

constexpr int kDefaultRanks = 4;
constexpr int kDefaultMicrobatches = 8;

/// Builders refuse what no machine can hold, so the largest number there is stays too large.
int to_int(std::int64_t n) {
  return static_cast<int>(std::min<std::int64_t>(n, std::numeric_limits<int>::max()));
}

std::vector<std::string> builder_names() {
  std::vector<std::string> names;
  for (const BuilderInfo& builder : builders()) {
    names.emplace_back(builder.name);
  }
  return names;
}

/// Reads a schedule of any format; what is neither a builder's name nor a file may be a misspelt
/// name.
Schedule read_file(const std::string& path, Console& console) {
  std::error_code ignored;
  if (path != "-" && !std::filesystem::exists(path, ignored)) {
    const bool looks_like_a_name = path.find_first_of("/.") == std::string::npos;
    throw Error(
        looks_like_a_name ? Errc::UsageArgument : Errc::UsageFile,
        fmt::format("--schedule expects a readable schedule file or one of {}, found '{}'; {}"
                    "see stagecraft train --help",
                    fmt::join(builder_names(), ", "),
                    path,
                    did_you_mean(path, builder_names())));
  }
  return read_schedule(path, {}, console).schedule;
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

/// Once, or once per replica.
bool is_chain(const Schedule& schedule, const Layout& layout) {
  return schedule.stage_graph().edges() ==
         layout.expand(StageGraph::chain(layout.model_stages())).edges();
}

/// Throws with the grid on which every violation is marked and told below. Keeps SC-1.
void check_rules(const ScheduleChoice& choice, const std::string& name) {
  const std::vector<Violation> violations =
      validate(choice.schedule,
               is_chain(choice.schedule, choice.layout)
                   ? choice.layout.expand(StageGraph::chain(choice.stages))
                   : choice.schedule.stage_graph(),
               {.microbatches = choice.microbatches});
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

ScheduleChoice from_file(const TrainOptions& options, Console& console) {
  const std::string& file = options.schedule;
  const Schedule schedule = read_file(file, console);
  if (schedule.stages() < 1 || schedule.microbatches() < 1) {
    throw Error(
        Errc::ScheduleParse,
        fmt::format(
            "the schedule file '{}' expects rows of cells such as 0F0, found none; see README.md",
            file));
  }
  Layout layout = Layout::of(schedule);
  if (!options.model_file && !is_chain(schedule, layout)) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("a Llama's stages are one chain, the schedule file '{}' names other edges; "
                    "leave its @edges out",
                    file));
  }
  if (!options.model_file && !schedule.stage_graph().frozen().empty()) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("all of a Llama trains, the schedule file '{}' names frozen stages; leave "
                    "its @frozen out",
                    file));
  }
  const int stages = layout.model_stages();
  if (options.chunks || !options.set.empty()) {
    throw Error(Errc::UsageArgument,
                fmt::format("--chunks and --set are for schedules by name, found the file '{}'; "
                            "leave them out",
                            file));
  }
  check_flag("--stages", options.stages, stages, file);
  check_flag("--ranks", options.ranks, layout.ranks(), file);
  if (options.data && options.microbatches != schedule.microbatches()) {
    throw Error(Errc::UsageArgument,
                fmt::format("--schedule expects a file for {} microbatches, as '{}' has them in a "
                            "step, found {} in '{}'",
                            *options.microbatches,
                            *options.data,
                            schedule.microbatches(),
                            file));
  }
  check_flag("--microbatches", options.microbatches, schedule.microbatches(), file);
  return {schedule, std::move(layout), stages, schedule.microbatches()};
}

ScheduleChoice from_builder(const TrainOptions& options, const BuilderInfo& builder) {
  // With one stage per rank, naming the stages names the ranks.
  const bool stages_are_ranks = builder.chunks == ChunkRule::One && !options.ranks;
  const int ranks = to_int(options.ranks.value_or(
      stages_are_ranks ? options.stages.value_or(kDefaultRanks) : kDefaultRanks));
  const int microbatches = to_int(options.microbatches.value_or(kDefaultMicrobatches));
  BuildRequest request{.devices = ranks, .microbatches = microbatches, .set = options.set};
  if (options.chunks) {
    request.chunks = to_int(*options.chunks);
  }
  if (builder.takes_graph) {
    request.graph = StageGraph::chain(ranks);
  }
  Schedule schedule = build_schedule(builder.name, request);
  Layout layout = Layout::of(schedule);
  const int stages = layout.model_stages();
  if (options.stages && *options.stages != stages) {
    throw Error(Errc::UsageArgument,
                fmt::format("--stages expects {}, as {} makes them of {} ranks, found {}; leave it "
                            "out or change --ranks or --chunks",
                            stages,
                            builder.name,
                            ranks,
                            *options.stages));
  }
  return {std::move(schedule), std::move(layout), stages, microbatches};
}

}  // namespace

ScheduleChoice choose_schedule(const TrainOptions& options, Console& console) {
  const auto all = builders();
  const auto builder = std::ranges::find(all, options.schedule, &BuilderInfo::name);
  ScheduleChoice choice =
      builder == all.end() ? from_file(options, console) : from_builder(options, *builder);
  check_rules(choice, options.schedule);
  return choice;
}

}  // namespace stagecraft::tools
