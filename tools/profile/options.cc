#include "stagecraft/tools/profile/options.h"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/word_choice.h"
#include "stagecraft/tools/train/catalog/model_options.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kProfileCommand = "stagecraft profile";
constexpr const char* kProfileAbout =
    "Measures what a model costs on this machine, for planners: the forward, backward and memory "
    "of "
    "every operator, the\noptimizer, and transfers between workers. docs/planning.md tells more.";
constexpr const char* kProfileFooter =
    "Measurements are kept below $XDG_CACHE_HOME/stagecraft/profiles, or ~/.cache: for one model, "
    "size, number of\nthreads and processor nothing is measured twice. Measure on an idle "
    "machine.\n"
    "Exit status: 0 good; 1 the model cannot be profiled; 2 wrong usage, or a file that cannot be "
    "used.";

constexpr int kMostThreads = 1024;  // more than any machine has processors

struct Words {
  std::map<std::string, double> sizes;
  std::string precision = "fp32";
  std::string workers = "threads";
};

void add_all(CLI::App& app, ProfileRequest& r, Words& words) {
  TrainOptions& o = r.model;
  add_model(app, o.model, words.sizes);
  app.add_option("--text", o.text, "file from which a model of texts gets its batch")
      ->type_name("FILE");
  app.add_option("--images",
                 o.images,
                 "folder from which a model of images gets its batch [a few drawn shapes]")
      ->type_name("DIR");
  app.add_option("--model-file", o.model_file, "file of torch.export.save or torch.jit.save")
      ->type_name("FILE");
  app.add_option("--data", o.data, "inputs of that model: step<k>_mb<j>_arg<i>.npy; step 0 is used")
      ->type_name("DIR");
  app.add_option(
         "--microbatch-sizes",
         r.sizes,
         "samples of a microbatch, e.g. 1,2,4; each size is measured, and plans may use any "
         "size between them [4, or that of the data]")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(whole_number(1));
  app.add_option("--precision",
                 words.precision,
                 "bf16: operators that can do so safely compute in bfloat16 (autocast)")
      ->type_name("fp32|bf16");
  app.add_option("--threads-per-worker", o.threads_per_worker, "threads inside one operator")
      ->check(whole_number(1, kMostThreads));
  app.add_option("--workers",
                 words.workers,
                 "workers between which transfers are measured: threads of a process, or processes "
                 "of this host")
      ->type_name("threads|processes");
  app.add_flag("--fresh", r.fresh, "measures known results again");
  app.add_option("--most-noise",
                 r.most_noise,
                 "percent of a microbatch's time; a size with more noise is measured up to three "
                 "times, and not kept if it stays noisy")
      ->type_name("X")
      ->check(number_from_zero());
  app.add_option("-o,--output", r.output, "writes costs.json; - prints it")->type_name("FILE");
  app.add_flag("--json", r.json, "prints one JSON object instead of a table");
  app.footer(kProfileFooter);
}

/// A model is one of ours, or a file with data; the options of one have no effect on the other.
void check_model(const CLI::App& app, ProfileRequest& r, const Words& words) {
  TrainOptions& o = r.model;
  const auto refuse = [&](const std::string& name, const std::string& why) {
    if (app.count(name) > 0) {
      wrong_usage(kProfileCommand, fmt::format("{} {}; leave one of the two out", name, why));
    }
  };
  if (!o.model_file) {
    refuse("--data", "expects --model-file, found none");
    o.sizes = sizes_of_named(kProfileCommand, app, o.model, words.sizes);
    return;
  }
  const std::string ours = "expects a model with a name, found --model-file";
  for (const char* const name : {"--model", "--text", "--images"}) {
    refuse(name, ours);
  }
  for (const auto& [name, value] : words.sizes) {
    refuse("--" + name, ours);
  }
  if (!o.data) {
    wrong_usage(kProfileCommand,
                "--model-file expects --data DIR with the inputs of a step, found none");
  }
}

}  // namespace

std::variant<ProfileRequest, HelpText> parse_profile_options(
    const std::vector<std::string>& arguments) {
  ProfileRequest request;
  Words words;
  CLI::App app(kProfileAbout, kProfileCommand);
  app.option_defaults()->always_capture_default();
  add_all(app, request, words);
  if (const auto help = parse_command_line(app, arguments)) {
    return HelpText{*help};
  }
  check_model(app, request, words);
  TrainOptions& model = request.model;
  model.precision =
      choose<Precision>(kProfileCommand,
                        "--precision",
                        words.precision,
                        {{"fp32", Precision::Float32}, {"bf16", Precision::BFloat16}});
  request.ranks =
      choose<RankHomes>(kProfileCommand,
                        "--workers",
                        words.workers,
                        {{"threads", RankHomes::Threads}, {"processes", RankHomes::Processes}});
  if (request.output == "-" && request.json) {
    wrong_usage(kProfileCommand,
                "--output - and --json both print to standard output; leave one of the two out");
  }
  model.all_steps = model.model_file.has_value();
  model.ranks = 1;
  model.stages = 1;
  model.schedule = "gpipe";
  if (!model.model_file) {
    if (request.sizes.empty()) {
      request.sizes = {static_cast<int>(model.microbatch_size)};
    }
    model.microbatches = 1;
    model.microbatch_size = *std::ranges::max_element(request.sizes);
  }
  return request;
}

}  // namespace stagecraft::tools
