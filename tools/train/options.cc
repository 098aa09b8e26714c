#include "stagecraft/tools/train/options.h"

#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tools/command_line.h"
#include "stagecraft/tools/train/number.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kCommand = "stagecraft train";
constexpr const char* kAbout =
    "Trains a small Llama on the bytes of a text, or a model from a file on a folder of data, cut "
    "into pipeline\nstages, one worker per row of the schedule.";
constexpr const char* kFooter =
    "Ctrl-C, SIGTERM and SIGHUP end a run after its step: it saves what --save asks for and closes "
    "as it\nalways does. A second one, more than 1 s later, ends it at once. When nobody reads its "
    "output any more, a\nrun with --save or --trace goes on to its end, others stop.\n"
    "Exit status: 0 good; 1 the run failed, the schedule breaks a rule or memory does not suffice; "
    "2 wrong\nusage, a file that cannot be used, or output that could not be written; 128 + the "
    "signal that ended it:\n130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.";

// More than any machine has processors; the libraries that start them do not survive every number.
constexpr std::int64_t kMostThreads = 1024;

constexpr std::int64_t kMostKept = 1'000'000;

// What a trainer takes: from a millisecond to a year. Units: seconds.
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
  app.add_option("--cut", o.cut, "where stages begin, e.g. layers.4,layers.8 [balanced by time]")
      ->type_name("PLACES|@FILE")
      ->group(group);
  app.add_option("--cut-out", o.cut_out, "writes the cut, for --cut @FILE")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--costs-out", o.costs_out, "writes what each operator costs, as costs.json")
      ->type_name("FILE")
      ->group(group);
}

void add_model(CLI::App& app, TrainOptions& o) {
  const std::string group = "Llama";
  app.add_option("--layers", o.layers, "decoder layers [4, or one per stage]")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--dim", o.dim, "width of the model")->check(whole_number(1))->group(group);
  app.add_option("--heads", o.heads, "attention heads; divides dim")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--ffn", o.ffn, "width of the feed-forward")->check(whole_number(1))->group(group);
  app.add_option("--seq", o.sequence, "bytes per sequence")->check(whole_number(1))->group(group);
}

void add_pipeline(CLI::App& app,
                  TrainOptions& o,
                  std::vector<std::string>& set,
                  std::string& recompute,
                  std::string& precision,
                  std::string& workers) {
  const std::string group = "Pipeline";
  app.add_option("--schedule", o.schedule, "a name from stagecraft schedule list, or a file")
      ->type_name("NAME|FILE")
      ->group(group);
  app.add_option("--ranks", o.ranks, "workers, one per row [4, or the schedule file's]")
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
  app.add_option("--microbatch-size", o.microbatch_size, "sequences per microbatch")
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
  app.add_option("--workers", workers, "threads of this process, or processes of this host")
      ->type_name("threads|processes")
      ->group(group);
  app.add_option("--credentials",
                 o.credentials,
                 "of worker processes: a folder of stagecraft credentials make [made for the run]")
      ->type_name("DIR")
      ->group(group);
}

void add_training(CLI::App& app, TrainOptions& o, std::string& optimizer, std::string& rate_kind) {
  const std::string group = "Training";
  app.add_option("--text", o.text, "what to learn; the vocabulary is its distinct bytes")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--steps", o.steps, "the step at which the run ends [of --data: all]")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--seed", o.seed, "of weights, windows and random operators")
      ->check(whole_number(0))
      ->group(group);
  app.add_option("--optimizer", optimizer, "adamw or sgd")->type_name("NAME")->group(group);
  app.add_option("--lr", o.rate, "learning rate")->check(positive_number())->group(group);
  app.add_option("--lr-schedule", rate_kind, "constant or cosine (to 0 at --steps)")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--warmup", o.warmup, "steps of linear warm-up")
      ->check(whole_number(0))
      ->group(group);
  app.add_option("--weight-decay", o.weight_decay, "of matrices [0.1 for adamw, 0 for sgd]")
      ->check(number_from_zero())
      ->group(group);
  app.add_option("--momentum", o.momentum, "of sgd")->check(number_from_zero(1.0))->group(group);
  app.add_option("--clip", o.clip, "largest norm of the whole gradient")
      ->check(positive_number())
      ->group(group);
  app.add_option("--eval-every", o.eval_every, "steps between evaluations on fixed windows")
      ->check(whole_number(1))
      ->group(group);
}

/// What a run keeps of itself in folders, and goes on from.
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
}

template <class Kind>
Kind choose(const std::string& option,
            const std::string& word,
            const std::map<std::string, Kind>& kinds) {
  const auto found = kinds.find(word);
  if (found != kinds.end()) {
    return found->second;
  }
  std::vector<std::string> names;
  for (const auto& [name, kind] : kinds) {
    names.push_back(name);
  }
  wrong_usage(fmt::format("{} expects {}, found '{}'", option, fmt::join(names, " or "), word));
}

/// A model is a Llama with a text, or a file with data; an option of the one means nothing to the
/// other.
void check_model(const TrainOptions& o, const CLI::App& app) {
  const auto refuse = [&](std::initializer_list<const char*> names, std::string_view why) {
    for (const char* name : names) {
      if (app.count(name) > 0) {
        wrong_usage(fmt::format("{} {}; leave one of the two out", name, why));
      }
    }
  };
  if (!o.model_file) {
    refuse({"--data", "--cut", "--cut-out", "--costs-out"}, "expects --model-file, found none");
    return;
  }
  refuse({"--text",
          "--layers",
          "--dim",
          "--heads",
          "--ffn",
          "--seq",
          "--microbatch-size",
          "--eval-every"},
         "is of the Llama and its text, found --model-file");
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
  check_model(o, app);
  if (o.load && o.load_weights) {
    wrong_usage(
        "--load-weights expects no --load, whose checkpoint has weights; leave one of the two out");
  }
  check_keeping(o, app);
  if (o.dim % o.heads != 0) {
    wrong_usage(fmt::format("--heads expects a divisor of --dim {}, found {}", o.dim, o.heads));
  }
  if (o.dim / o.heads % 2 != 0) {
    wrong_usage(fmt::format(
        "--dim / --heads expects an even number (the rotary embedding turns pairs), found {}",
        o.dim / o.heads));
  }
  if (o.optimizer == OptimizerKind::AdamW && app.count("--momentum") > 0) {
    wrong_usage("--momentum expects --optimizer sgd, found adamw; leave one of the two out");
  }
  if (o.credentials && o.workers == WorkerKind::Threads) {
    wrong_usage(
        "--credentials expects --workers processes, found threads; leave one of the two out");
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

}  // namespace

std::variant<TrainOptions, HelpText> parse_train_options(
    const std::vector<std::string>& arguments) {
  TrainOptions options;
  std::string optimizer = "adamw";
  std::string rate_kind = "constant";
  std::string workers = "threads";
  std::string recompute = "none";
  std::string precision = "fp32";
  std::string seed_from;
  std::vector<std::string> set;
  CLI::App app(kAbout, kCommand);
  app.option_defaults()->always_capture_default();
  app.footer(kFooter);
  add_training(app, options, optimizer, rate_kind);
  add_file(app, options);
  add_model(app, options);
  add_pipeline(app, options, set, recompute, precision, workers);
  add_run(app, options);
  add_keeping(app, options, seed_from);
  if (const auto help = parse_command_line(app, arguments)) {
    return HelpText{*help};
  }
  options.optimizer = choose<OptimizerKind>(
      "--optimizer", optimizer, {{"adamw", OptimizerKind::AdamW}, {"sgd", OptimizerKind::Sgd}});
  options.rate_kind = choose<RateKind>(
      "--lr-schedule", rate_kind, {{"constant", RateKind::Constant}, {"cosine", RateKind::Cosine}});
  options.workers =
      choose<WorkerKind>("--workers",
                         workers,
                         {{"threads", WorkerKind::Threads}, {"processes", WorkerKind::Processes}});
  options.precision = choose<Precision>(
      "--precision", precision, {{"fp32", Precision::Float32}, {"bf16", Precision::BFloat16}});
  options.recompute = recompute_of(recompute);
  if (!seed_from.empty()) {
    options.seed_from = choose<SeedChoice>(
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
      (*place)->pop_back();  // a folder is meant, and as such it is taken
    }
  }
  options.all_steps = options.model_file && app.count("--steps") == 0;
  check_together(options, app);
  return options;
}

}  // namespace stagecraft::tools
