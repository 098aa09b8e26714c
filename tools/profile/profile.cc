#include "stagecraft/tools/profile/profile.h"

#include <algorithm>
#include <memory>
#include <ostream>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stagecraft/actors/profile/profile.h"
#include "stagecraft/base/files/whole_file.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"
#include "stagecraft/tools/common/memory_limits.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/common/status_line.h"
#include "stagecraft/tools/profile/options.h"
#include "stagecraft/tools/profile/profile_report.h"
#include "stagecraft/tools/program/program_costs.h"
#include "stagecraft/tools/train/catalog/open_work.h"
#include "stagecraft/tools/train/work/work.h"

namespace stagecraft::tools {
namespace {

/// Fails before minutes of measuring. Errors: UsageFile.
void check_place(const std::optional<std::string>& output) {
  if (output && *output != "-" && !output_place(*output).is_stream()) {
    const WholeFile trial(*output);
  }
}

/// Returns the model as one stage, in microbatches of the largest size, or as the data or the
/// model's file have them.
WorkShape shape_of(const ProfileRequest& request, const Work& work) {
  if (const auto data = work.fixed_data()) {
    return WorkShape::uncut(data->microbatches, /*microbatch_size=*/1);
  }
  const auto samples = work.sample_data();
  const auto stated = samples ? samples->microbatch_size() : std::nullopt;
  const std::int64_t largest =
      request.sizes.empty() ? kUsualMicrobatchSize : *std::ranges::max_element(request.sizes);
  return WorkShape::uncut(/*microbatches=*/1, stated.value_or(largest));
}

Profile measured(const ProfileRequest& request, Console& console) {
  const std::unique_ptr<Work> work = open_work(request.work, memory_left());
  const WorkShape shape = shape_of(request, *work);
  const Program program = compile_in(request.precision, *work, shape);
  const WorkBatch batch = work->batch(0, shape);
  StatusLine line(console, request.json);
  Profile found =
      stagecraft::profile(program,
                          batch.inputs,
                          batch.labels,
                          {.microbatch_sizes = request.sizes,
                           .threads = static_cast<int>(request.threads),
                           .ranks = request.ranks,
                           .fresh = request.fresh,
                           .most_noise = request.most_noise / 100,
                           .progress = [&](std::string_view what, int place, int all) {
                             line.say(fmt::format("{} of {}: {} ...", place, all, what));
                           }});
  if (work->fixed_data()) {
    found.costs.batch = samples_of(program) * program.microbatches();
  }
  return found;
}

}  // namespace

ExitCode profile_model(const std::vector<std::string>& words, Console& console) {
  const auto parsed = parse_profile_options(words);
  if (const auto* help = std::get_if<ProfileHelp>(&parsed)) {
    print(help->text, console);
    return ExitCode::Good;
  }
  const auto& request = std::get<ProfileRequest>(parsed);
  check_place(request.output);
  const SingleThreaded alone;  // this thread's computation must not start a pool of helper threads
  const Profile found = measured(request, console);
  for (const std::string& note : found.notes) {
    console.err << "stagecraft profile: note: " << note << '\n';
  }
  if (request.output) {
    write_output(*request.output, stagecraft::to_json(found.costs), console);
  }
  if (request.output != "-") {
    const std::string name = request.work.model.file.value_or(request.work.model.name);
    print(request.json ? to_json(name, found, request.ranks) : to_text(name, found, request.ranks),
          console);
  }
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
