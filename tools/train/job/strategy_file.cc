#include "stagecraft/tools/train/job/strategy_file.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/split.h"
#include "stagecraft/compiler/cut/cut_file.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"

namespace stagecraft::tools {
namespace {

/// Returns the beginnings of the stages after the first, "op:12,op:24"; nothing if the stages are
/// no chain, because their operators need a file.
std::string cut_words(const std::string& cut) {
  std::vector<std::string_view> places;
  for (const std::string_view line : split(cut, '\n')) {
    if (line.starts_with('{')) {
      return "";
    }
    if (!line.empty() && !line.starts_with('@')) {
      places.push_back(line.substr(0, line.find(' ')));
    }
  }
  return fmt::format("{}", fmt::join(places.begin() + 1, places.end(), ","));
}

std::string recompute_words(const Recompute& recompute) {
  return recompute.what == Recompute::What::Stages
             ? "stage"
             : fmt::format("{}", fmt::join(recompute.names, ","));
}

/// Returns the comment: options in one line, and the lines of a cut that needs a file.
std::string completing(const TrainJob& job) {
  const PipelineOptions& o = job.options.pipeline;
  const WorkShape& shape = job.choice.shape;
  std::vector<std::string> options;
  std::string lines;
  if (placed_stages(job.execution.strategy) < shape.stages) {
    options.push_back(fmt::format("--stages {}", shape.stages));
  }
  if (!job.work->fixed_data()) {
    options.push_back(fmt::format("--microbatch-size {}", shape.microbatch_size));
  }
  // A model of the command marks its stages itself, unless a cut overrides them.
  if (shape.stages > 1 && (shape.cut || job.options.model.file)) {
    const std::string cut = write_cut(job.execution.program.cut());
    const std::string words = cut_words(cut);
    options.push_back("--cut " + (words.empty() ? "@FILE" : words));
    if (words.empty()) {
      lines = "# with a FILE of these lines:\n";
      for (const std::string_view line : split(cut, '\n')) {
        lines += line.empty() ? "" : fmt::format("#   {}\n", line.substr(0, line.find("  #")));
      }
    }
  }
  if (o.recompute != Recompute::nothing()) {
    options.push_back("--recompute " + recompute_words(o.recompute));
  }
  if (o.precision != Precision::Float32) {
    options.push_back("--precision " + word_of(o.precision));
  }
  return options.empty() ? ""
                         : fmt::format(
                               "# The directives do not say these options, which the same "
                               "run needs too:\n#   {}\n{}",
                               fmt::join(options, " "),
                               lines);
}

}  // namespace

std::string unsayable(const TrainJob& job) {
  if (job.choice.layout.replicas() > 1) {
    return "whose rows run each stage once, found one with @replicas";
  }
  if (!job.choice.schedule.stage_graph().microbatch_sizes().empty()) {
    return "whose stages take the same microbatches, found sizes";
  }
  return "";
}

std::string strategy_file(const TrainJob& job) {
  if (const std::string why = unsayable(job); !why.empty()) {
    throw Error(Errc::UsageArgument,
                fmt::format("--strategy-out expects a schedule {}, which a strategy cannot say; "
                            "leave it out",
                            why));
  }
  return completing(job) + to_string(job.execution.strategy);
}

}  // namespace stagecraft::tools
