#include "stagecraft/tools/train/options/options.h"

#include <algorithm>
#include <map>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/executor/optimizer/optimizer_table.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/planners/registry.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/word_choice.h"
#include "stagecraft/tools/train/catalog/model_options.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kCommand = "stagecraft train";
constexpr const char* kAbout =
    "Trains a small model on a text or on images, or a model from a file on a folder of data, cut "
    "into pipeline\nstages, one worker per row of the schedule.";
constexpr const char* kFooter =
    "Ctrl-C, SIGTERM and SIGHUP end a run after its step: it saves what --save asks for and closes "
    "as it\nalways does. A second one, more than 1 s later, ends it at once. When nobody reads its "
    "output any more, a\nrun with --save or --trace goes on to its end, others stop.\n"
    "Exit status: 0 good; 1 the run failed, the schedule breaks a rule or memory does not suffice; "
    "2 wrong\nusage, a file that cannot be used, or output that could not be written; 128 + the "
    "signal that ended it:\n130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.";

// More than any machine has processors. Libraries that start threads fail at very large numbers.
constexpr std::int64_t kMostThreads = 1024;

// Each batch runs separately, one after the other.
constexpr std::int64_t kMostAccumulated = 1'000'000;
constexpr std::int64_t kMostKept = 1'000'000;

// The range that a trainer takes: from a millisecond to a year. Units: seconds.
constexpr double kLeastDeadline = 0.001;
constexpr double kMostDeadline = 365.0 * 24.0 * 3600.0;

[[noreturn]] void wrong_usage(const std::string& message) {
  tools::wrong_usage(kCommand, message);
}

void add_file(CLI::App& app, TrainOptions& o) {
  const std::string group = "Model from a file (docs/models.md)";
  app.add_option("--model-file", o.model_file, "what torch.export.save or torch.jit.save wrote")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--data", o.data, "its inputs: step<k>_mb<j>_arg<i>.npy, counted from 0")
      ->type_name("DIR")
      ->group(group);
}

void add_pipeline(CLI::App& app,
                  TrainOptions& o,
                  std::vector<std::string>& set,
                  std::string& recompute,
                  std::string& precision,
                  std::string& workers,
                  std::string& processor) {
  const std::string group = "Pipeline";
  app.add_option("--schedule", o.schedule, "a name from stagecraft schedule list, or a file")
      ->type_name("NAME|FILE")
      ->group(group);
  app.add_option(
         "--graph",
         o.graph,
         "which stage feeds which, e.g. 0-2,1-2, to be sure of it; the model says it [its own]")
      ->type_name("EDGES|@FILE")
      ->group(group);
  app.add_option("--plan",
                 o.plan,
                 "auto or a planner: measures the model, then chooses cut, schedule and "
                 "microbatches (docs/planning.md)")
      ->type_name("PLANNER")
      ->group(group);
  app.add_option("--microbatch-sizes",
                 o.microbatch_sizes,
                 "of --plan: sizes to choose from, the step keeps its samples [half, as it is and "
                 "double, where neither number nor size of microbatches is given]")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--cut",
                 o.cut,
                 "where stages begin, e.g. layers.4,layers.8 [the model's markers; of a file, "
                 "balanced by time]")
      ->type_name("PLACES|@FILE")
      ->group(group);
  app.add_option("--cut-out", o.cut_out, "writes the cut, for --cut @FILE")
      ->type_name("FILE")
      ->group(group);
  app.add_option(
         "--costs",
         o.costs,
         "a costs.json of an earlier run or a profile: says how long this one is to take, and "
         "zb-auto is made for it")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--costs-out",
                 o.costs_out,
                 "writes at the end what stages, links and operators took, for --costs")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--usual-ranks", o.usual_ranks)->envname("STAGECRAFT_RANKS")->group("");
  app.add_option("--ranks",
                 o.ranks,
                 "workers, one per row [4, as many as launched hosts take, or the schedule file's]")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--stages",
                 o.stages,
                 "stages the model is cut into [what the schedule makes of the ranks]")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--chunks", o.chunks, "stages per rank, where the schedule leaves that open")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--set", set, "a parameter of the schedule, e.g. k=2; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group);
  app.add_option("--microbatches",
                 o.microbatches,
                 "microbatches per step [8, or the schedule file's or the data's]")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--microbatch-size",
                 o.microbatch_size,
                 "sequences or images per microbatch; the file of a planned cut says it too")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--recompute",
                 recompute,
                 "keep only the inputs of stages, or of stages, regions and parameter paths by "
                 "name, and run them again before their backward")
      ->type_name("none|stage|NAME,...")
      ->group(group);
  app.add_option("--precision",
                 precision,
                 "bf16: operators for which it is safe compute in bfloat16 (autocast); weights and "
                 "optimizer stay in float32")
      ->type_name("fp32|bf16")
      ->group(group);
  app.add_option("--threads-per-worker", o.threads_per_worker, "threads inside one operator")
      ->check(whole_number(1, kMostThreads))
      ->group(group);
  app.add_option("--memory-limit",
                 o.memory_limit,
                 "most memory that the steps of one worker may hold, in use and cached, MiB")
      ->type_name("MIB")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--workers",
                 workers,
                 "threads of this process, processes of this host, or workers that join by "
                 "themselves; stagecraft launch says which")
      ->type_name("threads|processes|joining")
      ->envname("STAGECRAFT_WORKERS")
      ->group(group);
  app.add_option("--processor",
                 processor,
                 "common: all processes, this one too, compute with the widest code that all have, "
                 "so that hosts of several kinds end with the same bits (docs/cluster.md)")
      ->type_name("own|common")
      ->envname("STAGECRAFT_PROCESSOR")
      ->group(group);
  app.add_option("--credentials",
                 o.credentials,
                 "of worker processes: a folder of stagecraft credentials make [made for the run]")
      ->type_name("DIR")
      ->group(group);
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerInfo& optimizer : kOptimizers) {
    names.emplace_back(optimizer.name);
  }
  return names;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  return fmt::format("{}", fmt::join(words, between));
}

std::vector<std::string> optimizers_with(std::string_view setting) {
  std::vector<std::string> names;
  for (const OptimizerInfo& optimizer : kOptimizers) {
    if (std::ranges::find(optimizer.settings, setting, &SettingInfo::name) !=
        optimizer.settings.end()) {
      names.emplace_back(optimizer.name);
    }
  }
  return names;
}

/// A setting of an optimizer as an option.
struct SettingOption {
  SettingInfo setting;
  const char* about;
  double limit = 0.0;  ///< stricter than its range; 0: none
  std::optional<double> value;
  bool on = false;

  [[nodiscard]] std::string option() const {
    std::string text = "--" + std::string(setting.name);
    std::ranges::replace(text, '_', '-');
    return text;
  }
};

std::vector<SettingOption> setting_options() {
  const std::map<std::string_view, std::pair<const char*, double>> about{
      {"weight_decay", {"[0.1 for adamw, 0 for others]", 0.0}},
      {"beta1", {"share that is kept of the mean of gradients [0.9]", 0.0}},
      {"beta2", {"and of their squares [0.95 for adamw, 0.999]", 0.0}},
      {"eps", {"added to what is divided by [1e-8, 1e-10 for adagrad]", 0.0}},
      {"amsgrad", {"divide by the largest squares so far", 0.0}},
      {"momentum", {"share that is kept of the last change [0]", 1.0}},
      {"dampening", {"share of the gradient that momentum leaves out [0]", 0.0}},
      {"nesterov", {"momentum that looks ahead", 0.0}},
      {"lr_decay", {"falls the rate with every step [0]", 0.0}},
      {"initial_accumulator_value", {"what sums of squares begin with [0]", 0.0}},
      {"alpha", {"share that is kept of the mean of squares [0.99]", 0.0}},
      {"centered", {"divide by the variance instead", 0.0}},
  };
  std::vector<SettingOption> all;
  for (const OptimizerInfo& optimizer : kOptimizers) {
    for (const SettingInfo& setting : optimizer.settings) {
      const auto known = [&](const SettingOption& o) { return o.setting.name == setting.name; };
      if (setting.name != "lr" && std::ranges::none_of(all, known)) {
        const auto& [text, limit] = about.at(setting.name);
        all.push_back({.setting = setting, .about = text, .limit = limit});
      }
    }
  }
  return all;
}

/// Requires: `given` stays where it is.
void add_settings(CLI::App& app, std::vector<SettingOption>& given, const std::string& group) {
  for (SettingOption& o : given) {
    const std::vector<std::string> whose = optimizers_with(o.setting.name);
    const std::string about = whose.size() == kOptimizers.size()
                                  ? o.about
                                  : fmt::format("of {}: {}", joined(whose, ", "), o.about);
    if (o.setting.range == SettingRange::Switch) {
      app.add_flag(o.option(), o.on, about)->group(group);
    } else {
      app.add_option(o.option(), o.value, about)
          ->check(number_from_zero(o.setting.range == SettingRange::Share ? 1.0 : o.limit))
          ->group(group);
    }
  }
}

/// Errors: UsageArgument for a setting that the optimizer does not have.
std::map<std::string, double> settings_of(const TrainOptions& o,
                                          const std::vector<SettingOption>& given,
                                          const CLI::App& app) {
  std::map<std::string, double> settings;
  for (const SettingOption& s : given) {
    if (app.count(s.option()) == 0) {
      continue;
    }
    const std::vector<std::string> whose = optimizers_with(s.setting.name);
    if (std::ranges::find(whose, o.optimizer) == whose.end()) {
      wrong_usage(fmt::format("{} expects --optimizer {}, found {}; leave one of the two out",
                              s.option(),
                              joined(whose, " or "),
                              o.optimizer));
    }
    settings[std::string(s.setting.name)] =
        s.setting.range == SettingRange::Switch ? (s.on ? 1.0 : 0.0) : *s.value;
  }
  return settings;
}

void add_patterns(CLI::App& app,
                  const char* option,
                  std::vector<std::string>& patterns,
                  const char* about,
                  const std::string& group) {
  app.add_option(option, patterns, fmt::format("{}, e.g. '*.bias'; may be repeated", about))
      ->type_name("PATTERN")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group);
}

void add_training(CLI::App& app,
                  TrainOptions& o,
                  std::vector<SettingOption>& given,
                  std::string& rate_kind,
                  std::string& decay_on) {
  const std::string group = "Training";
  app.add_option("--text", o.text, "what to learn; the vocabulary is its distinct bytes")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--images",
                 o.images,
                 "PNG and JPEG files in one folder per class, or with a captions.txt for clip "
                 "[a few drawn shapes]")
      ->type_name("DIR")
      ->group(group);
  app.add_flag("--read-on-workers",
               o.read_on_workers,
               "workers read text, images or data themselves, at the same place on every host")
      ->group(group);
  app.add_option("--steps", o.steps, "the step at which the run ends [of --data: all]")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--accumulate", o.accumulate, "batches of microbatches that a step adds up")
      ->check(whole_number(1, kMostAccumulated))
      ->group(group);
  app.add_option("--seed", o.seed, "of weights, windows and random operators")
      ->check(whole_number(0))
      ->group(group);
  app.add_option("--optimizer", o.optimizer, joined(optimizer_names(), ", "))
      ->type_name("NAME")
      ->group(group);
  app.add_option("--lr", o.rate, "learning rate")->check(positive_number())->group(group);
  app.add_option("--lr-schedule", rate_kind, "constant, or cosine or linear (to 0 at --steps)")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--warmup", o.warmup, "steps of linear warm-up")
      ->check(whole_number(0))
      ->group(group);
  add_settings(app, given, group);
  app.add_option("--decay-on", decay_on, "which parameters: of two or more dimensions, or all")
      ->type_name("matrices|all")
      ->group(group);
  add_patterns(app, "--no-decay", o.no_decay, "parameters without weight decay, too", group);
  add_patterns(app, "--freeze", o.freeze, "parameters that do not change", group);
  app.add_option("--clip", o.clip, "largest norm of the whole gradient")
      ->check(positive_number())
      ->group(group);
  app.add_option(
         "--eval-every", o.eval_every, "steps between evaluations on what no step trains on")
      ->check(whole_number(1))
      ->group(group);
}

/// Adds the options for folders that a run keeps, and from which it continues.
void add_keeping(CLI::App& app, TrainOptions& o, std::string& seed_from) {
  const std::string group = "Run";
  app.add_option("--save-dir", o.save_dir, "folder of checkpoints to write while it runs")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--save-every", o.save_every, "steps between these [only at the end]")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--keep", o.keep, "so many of the newest stay")
      ->check(whole_number(1, kMostKept))
      ->group(group);
  app.add_option(
         "--resume", o.resume, "folder whose newest whole checkpoint to go on from, if it has one")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--seed-from",
                 seed_from,
                 "whose seed goes on where a checkpoint has another than --seed: checkpoint or "
                 "option")
      ->type_name("WHO")
      ->group(group);
  app.add_option("--save-module", o.save_module, "file to write then, as torch::save(module) does")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--metrics", o.metrics, "folder for metrics.csv and TensorBoard's event files")
      ->type_name("DIR")
      ->group(group);
}

void add_run(CLI::App& app, TrainOptions& o) {
  const std::string group = "Run";
  app.add_option("--save", o.save, "checkpoint to write at the end, or when a signal ends the run")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--load", o.load, "checkpoint to go on from")->type_name("FILE")->group(group);
  app.add_option("--save-weights",
                 o.save_weights,
                 "parameters and buffers to write then, too: NAME.npy in a folder, or one file")
      ->type_name("DIR|FILE.safetensors")
      ->group(group);
  app.add_option("--load-weights", o.load_weights, "such, to begin with")
      ->type_name("DIR|FILE.safetensors")
      ->group(group);
  app.add_option("--trace", o.trace, "timeline to write, for ui.perfetto.dev and stagecraft trace")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--step-deadline", o.step_deadline, "longest that a step may take, seconds [300]")
      ->type_name("SECONDS")
      ->check(positive_number())
      ->group(group);
  app.add_flag(
         "--mirror",
         o.mirror,
         "keep every rank's state in a neighbour's memory too, to go on from when one is lost")
      ->group(group);
  app.add_flag("--dry-run",
               o.dry_run,
               "compile, check, print the plan and what it holds in memory; run nothing")
      ->group(group);
  app.add_flag("--verify", o.verify, "also train in one process and compare bit by bit")
      ->group(group);
  app.add_flag("--json", o.json, "one JSON object per line")->group(group);
  app.add_flag("--force", o.force, "try, although memory seems not to suffice")->group(group);
  app.add_flag("--verbose", o.verbose, "say on standard error how long each pass of compiling took")
      ->group(group);
}

/// A model is one of ours with a text or images, or a file with data; the options of one have no
/// effect on the other.
void check_model(TrainOptions& o, const CLI::App& app, const std::map<std::string, double>& given) {
  const auto refuse = [&](std::initializer_list<const char*> names, std::string_view why) {
    for (const char* name : names) {
      if (app.count(name) > 0) {
        wrong_usage(fmt::format("{} {}; leave one of the two out", name, why));
      }
    }
  };
  if (!o.model_file) {
    refuse({"--data"}, "expects --model-file, found none");
    o.sizes = sizes_of_named(kCommand, app, o.model, given);
    return;
  }
  constexpr const char* kOfOurs = "is of the models that have a name, found --model-file";
  refuse(
      {"--model", "--text", "--images", "--microbatch-size", "--microbatch-sizes", "--eval-every"},
      kOfOurs);
  for (const auto& [name, value] : given) {
    refuse({fmt::format("--{}", name).c_str()}, kOfOurs);
  }
  if (!o.data) {
    wrong_usage("--model-file expects --data DIR with the inputs of its steps, found none");
  }
}

void check_keeping(const TrainOptions& o, const CLI::App& app) {
  if (o.load && o.resume) {
    wrong_usage(
        "--resume expects no --load, which names the checkpoint itself; leave one of the two out");
  }
  if (o.save_every && !o.save_dir) {
    wrong_usage("--save-every expects --save-dir DIR, or --resume DIR, for its files, found none");
  }
  if (app.count("--keep") > 0 && !o.save_every) {
    wrong_usage("--keep expects --save-every, found none; leave it out");
  }
  if (o.seed_from != SeedChoice::Same && !o.load && !o.resume) {
    wrong_usage("--seed-from expects --load or --resume, found none; leave it out");
  }
}

Recompute recompute_of(const std::string& text) {
  try {
    return parse_recompute(text);
  } catch (const Error& error) {
    wrong_usage(fmt::format("--recompute: {}", error.message()));
  }
}

void check_together(const TrainOptions& o, const CLI::App& app) {
  if (o.load && o.load_weights) {
    wrong_usage(
        "--load-weights expects no --load, whose checkpoint has weights; leave one of the two out");
  }
  check_keeping(o, app);
  if (o.credentials && o.workers == WorkerKind::Threads) {
    wrong_usage(
        "--credentials expects --workers processes or joining, found threads; leave one of the two "
        "out");
  }
  if (!o.all_steps && o.warmup > o.steps) {
    wrong_usage(fmt::format("--warmup expects at most --steps {}, found {}", o.steps, o.warmup));
  }
  if (o.step_deadline && (*o.step_deadline < kLeastDeadline || *o.step_deadline > kMostDeadline)) {
    wrong_usage(fmt::format("--step-deadline expects {} to {} seconds, found {}",
                            kLeastDeadline,
                            static_cast<std::int64_t>(kMostDeadline),
                            *o.step_deadline));
  }
}

/// A plan replaces these options.
void check_plan(TrainOptions& o, const CLI::App& app) {
  o.size_given = app.count("--microbatch-size") > 0;
  if (!o.plan) {
    if (!o.microbatch_sizes.empty()) {
      wrong_usage("--microbatch-sizes expects --plan, found none; leave it out");
    }
    return;
  }
  o.keep_microbatches = app.count("--microbatches") > 0 || o.size_given;
  for (const char* name : {"--schedule", "--cut", "--graph", "--stages", "--chunks", "--set"}) {
    if (app.count(name) > 0) {
      wrong_usage(fmt::format("--plan chooses what {} says; leave one of the two out", name));
    }
  }
  if (o.costs) {
    wrong_usage("--costs expects no --plan, which measures for itself; leave one of the two out");
  }
  if (*o.plan != "auto") {
    (void)find_planner(*o.plan);
  }
}

}  // namespace

std::variant<TrainOptions, HelpText> parse_train_options(
    const std::vector<std::string>& arguments) {
  TrainOptions options;
  std::vector<SettingOption> given = setting_options();
  std::string rate_kind = "constant";
  std::string decay_on = "matrices";
  std::string workers = "threads";
  std::string processor = "own";
  std::string recompute = "none";
  std::string precision = "fp32";
  std::string seed_from;
  std::vector<std::string> set;
  std::map<std::string, double> sizes;
  CLI::App app(kAbout, kCommand);
  app.option_defaults()->always_capture_default();
  app.footer(kFooter);
  add_training(app, options, given, rate_kind, decay_on);
  add_file(app, options);
  add_model(app, options.model, sizes);
  add_pipeline(app, options, set, recompute, precision, workers, processor);
  add_run(app, options);
  add_keeping(app, options, seed_from);
  if (const auto help = parse_command_line(app, arguments)) {
    return HelpText{*help};
  }
  const std::vector<std::string> optimizers = optimizer_names();
  if (std::ranges::find(optimizers, options.optimizer) == optimizers.end()) {
    wrong_usage(fmt::format(
        "--optimizer expects {}, found '{}'", joined(optimizers, " or "), options.optimizer));
  }
  options.settings = settings_of(options, given, app);
  options.rate_kind = choose<RateKind>(kCommand,
                                       "--lr-schedule",
                                       rate_kind,
                                       {{"constant", RateKind::Constant},
                                        {"cosine", RateKind::Cosine},
                                        {"linear", RateKind::Linear}});
  options.decay_on =
      choose<DecayKind>(kCommand,
                        "--decay-on",
                        decay_on,
                        {{"all", DecayKind::All}, {"matrices", DecayKind::Matrices}});
  options.workers = choose<WorkerKind>(kCommand,
                                       "--workers",
                                       workers,
                                       {{"joining", WorkerKind::Joining},
                                        {"processes", WorkerKind::Processes},
                                        {"threads", WorkerKind::Threads}});
  options.processor =
      choose<ProcessorChoice>(kCommand,
                              "--processor",
                              processor,
                              {{"common", ProcessorChoice::Common}, {"own", ProcessorChoice::Own}});
  options.precision =
      choose<Precision>(kCommand,
                        "--precision",
                        precision,
                        {{"bf16", Precision::BFloat16}, {"fp32", Precision::Float32}});
  options.recompute = recompute_of(recompute);
  if (!seed_from.empty()) {
    options.seed_from = choose<SeedChoice>(
        kCommand,
        "--seed-from",
        seed_from,
        {{"checkpoint", SeedChoice::Checkpoint}, {"option", SeedChoice::Option}});
  }
  if (options.save_every && !options.save_dir) {
    options.save_dir = options.resume;
  }
  options.set = key_values(kCommand, "--set", set);
  for (auto* place : {&options.save_weights,
                      &options.load_weights,
                      &options.save_dir,
                      &options.resume,
                      &options.metrics}) {
    while (*place && (*place)->size() > 1 && (*place)->ends_with('/')) {
      (*place)->pop_back();  // both forms name the folder
    }
  }
  options.all_steps = options.model_file && app.count("--steps") == 0;
  check_model(options, app, sizes);
  check_plan(options, app);
  check_together(options, app);
  return options;
}

}  // namespace stagecraft::tools
