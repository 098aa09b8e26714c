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
    "Measures what a model costs on this machine, for planners: every operator's forward, backward "
    "and memory, the\noptimizer, and transfers between workers. docs/planning.md tells more.";
constexpr const char* kProfileFooter =
    "What was measured once is kept below $XDG_CACHE_HOME/stagecraft/profiles, or ~/.cache: for a "
    "model, a size, a\ncount of threads and a processor nothing is measured twice. Measure on a "
    "machine that has nothing else to do.\n"
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
  app.add_option("--text", o.text, "of which a model of texts gets its batch")->type_name("FILE");
  app.add_option("--images", o.images, "of which one of images does [a few drawn shapes]")
      ->type_name("DIR");
  app.add_option("--model-file", o.model_file, "what torch.export.save or torch.jit.save wrote")
      ->type_name("FILE");
  app.add_option("--data", o.data, "its inputs: step<k>_mb<j>_arg<i>.npy, of which step 0 is used")
      ->type_name("DIR");
  app.add_option("--microbatch-sizes",
                 r.sizes,
                 "samples of a microbatch, e.g. 1,2,4: each is measured; stages and memory are "
                 "planned for any between [4, or that of the data]")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(whole_number(1));
  app.add_option("--precision",
                 words.precision,
                 "bf16: operators for which it is safe compute in bfloat16 (autocast)")
      ->type_name("fp32|bf16");
  app.add_option("--threads-per-worker", o.threads_per_worker, "threads inside one operator")
      ->check(whole_number(1, kMostThreads));
  app.add_option("--workers",
                 words.workers,
                 "between which transfers are measured: threads of a process, or processes of this "
                 "host")
      ->type_name("threads|processes");
  app.add_flag("--fresh", r.fresh, "measure anew what is known");
  app.add_option("--most-noise",
                 r.most_noise,
                 "percent of a microbatch's time: a noisier size is measured again, up to three "
                 "times, and then not kept")
      ->type_name("X")
      ->check(number_from_zero());
  app.add_option("-o,--output", r.output, "writes costs.json; - prints it")->type_name("FILE");
  app.add_flag("--json", r.json, "one JSON object instead of a table");
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
  const std::string ours = "is of the models that have a name, found --model-file";
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
                "--output - expects no --json, which prints too; leave one of the two out");
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
