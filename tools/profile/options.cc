#include "stagecraft/tools/profile/options.h"

#include <CLI/CLI.hpp>

#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/word_choice.h"
#include "stagecraft/tools/train/catalog/model_options.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kProfileCommand = "stagecraft profile";
constexpr const char* kProfileAbout =
    "Measures the costs of a model on this machine, for planners: the forward, backward and memory "
    "of every operator, the optimizer, and transfers between workers. See docs/planning.md.";
constexpr const char* kProfileFooter =
    "Measurements are kept below $XDG_CACHE_HOME/stagecraft/profiles, or ~/.cache: for one model, "
    "size, number of threads and processor nothing is measured twice. Measure on an idle machine.\n"
    "Exit status: 0 success; 1 the model cannot be profiled; 2 wrong usage, or a file that cannot "
    "be used.\n"
    "Example: stagecraft profile --model clip -o costs.json";

constexpr int kMostThreads = 1024;  // more than any machine has processors

void add_all(CLI::App& app, ProfileRequest& r) {
  add_model_options(app, r.work.model, r.work.data);
  app.add_option("--microbatch-sizes",
                 r.sizes,
                 "samples of a microbatch, e.g. 1,2,4: each is measured; stages and memory are "
                 "planned for any between [4, or that of the data]")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(whole_number(1));
  add_choice<Precision>(app,
                        "--precision",
                        r.precision,
                        precision_words(),
                        "bf16, fp16: compute in bfloat16 or float16 where that is safe (autocast)");
  app.add_option("--threads-per-worker", r.threads, "threads inside one operator")
      ->check(whole_number(1, kMostThreads));
  add_choice<RankHomes>(
      app,
      "--workers",
      r.ranks,
      {{"threads", RankHomes::Threads}, {"processes", RankHomes::Processes}},
      "measure transfers between threads of one process, or between processes of this host");
  app.add_flag("--fresh", r.fresh, "measure known results again");
  app.add_option("--most-noise",
                 r.most_noise,
                 "percent of a microbatch's time; a size with more noise is measured up to three "
                 "times, and not kept if it stays noisy")
      ->type_name("X")
      ->check(number_from_zero());
  app.add_option("-o,--output", r.output, "file to write, a costs.json; - is standard output")
      ->type_name("FILE");
  app.add_flag("--json", r.json, "print one JSON object");
  app.footer(kProfileFooter);
}

}  // namespace

std::variant<ProfileRequest, ProfileHelp> parse_profile_options(
    const std::vector<std::string>& arguments) {
  ProfileRequest request;
  CLI::App app(kProfileAbout, kProfileCommand);
  app.option_defaults()->always_capture_default();
  add_all(app, request);
  if (const auto help = parse_command_line(app, arguments)) {
    return ProfileHelp{*help};
  }
  settle_model(kProfileCommand, app, request.work.model, request.work.data);
  if (request.output == "-" && request.json) {
    wrong_usage(kProfileCommand,
                "--output - and --json both print to standard output; leave one of the two out");
  }
  if (!request.work.model.file && request.sizes.empty()) {
    request.sizes = {static_cast<int>(kUsualMicrobatchSize)};
  }
  return request;
}

}  // namespace stagecraft::tools
