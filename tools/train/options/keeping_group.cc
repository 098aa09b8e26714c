#include <cstdint>

#include <CLI/CLI.hpp>

#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/word_choice.h"
#include "stagecraft/tools/run_record/run_record.h"
#include "stagecraft/tools/train/options/groups.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kKeepingGroup = "Checkpoints and other files (docs/train-command.md)";
constexpr std::int64_t kMostKept = 1'000'000;

void add_checkpoints(CLI::App& app, KeepingOptions& o) {
  app.add_option("--run-dir",
                 o.run_dir,
                 "folder for all of the run: its record, checkpoints, metrics, logs of workers; "
                 "the same command again continues the run")
      ->type_name("DIR")
      ->group(kKeepingGroup);
  app.add_option("--save", o.save, "checkpoint to write at the end, also if a signal ends the run")
      ->type_name("FILE")
      ->group(kKeepingGroup);
  app.add_option("--load", o.load, "checkpoint to continue from")
      ->type_name("FILE")
      ->group(kKeepingGroup);
  app.add_option(
         "--save-dir", o.save_dir, "folder for checkpoints during the run [that of --resume]")
      ->type_name("DIR")
      ->group(kKeepingGroup);
  app.add_option("--save-every", o.save_every, "steps between these checkpoints [only at the end]")
      ->check(whole_number(1))
      ->group(kKeepingGroup);
  app.add_option("--keep", o.keep, "number of newest checkpoints to keep")
      ->check(whole_number(1, kMostKept))
      ->group(kKeepingGroup);
  app.add_option("--resume",
                 o.resume,
                 "folder of checkpoints: continue from the newest complete one, if there is one")
      ->type_name("DIR")
      ->group(kKeepingGroup);
  add_choice<SeedChoice>(
      app,
      "--seed-from",
      o.seed_from,
      {{"checkpoint", SeedChoice::Checkpoint}, {"option", SeedChoice::Option}},
      "seed to continue with if the checkpoint has another one than --seed [refuse]")
      ->group(kKeepingGroup);
}

void check_keeping(const KeepingOptions& o, const CLI::App& app) {
  const auto refuse = [](const char* message) { wrong_usage(kTrainCommand, message); };
  if (o.load && o.load_weights) {
    refuse(
        "--load-weights expects no --load, whose checkpoint has weights; leave one of the two out");
  }
  if (o.load && o.run_dir) {
    refuse(
        "--run-dir expects no --load: its run continues from its own checkpoints; begin from "
        "others with --load-weights, or leave one of the two out");
  }
  if (o.load && o.resume) {
    refuse(
        "--resume expects no --load, which names the checkpoint itself; leave one of the two out");
  }
  if (o.save_every && !o.save_dir) {
    refuse("--save-every expects --save-dir DIR, or --resume DIR, for its files, found none");
  }
  if (o.save_averages && !o.save_weights) {
    refuse("--save-averages expects --save-weights PLACE for them, found none");
  }
  if (app.count("--keep") > 0 && !o.save_every) {
    refuse("--keep expects --save-every, found none; leave it out");
  }
  if (o.seed_from != SeedChoice::Same && !o.load && !o.resume) {
    refuse("--seed-from expects --load or --resume, found none; leave it out");
  }
}

/// Gives the files of a run folder their places there, unless they have others.
void settle_run_folder(KeepingOptions& o) {
  if (!o.run_dir) {
    return;
  }
  if (o.resume && !o.save_dir) {
    wrong_usage(
        kTrainCommand,
        "--run-dir expects no --resume: its run continues from its own checkpoints, and must not "
        "remove others; name --save-dir too, or leave --resume out");
  }
  const RunPlaces places(*o.run_dir);
  o.logs = places.logs;
  o.metrics = o.metrics.value_or(places.metrics);
  o.save_dir = o.save_dir.value_or(places.checkpoints);
  o.resume = o.resume ? o.resume : o.save_dir;
}

}  // namespace

void add_keeping(CLI::App& app, KeepingOptions& o) {
  add_checkpoints(app, o);
  app.add_option("--save-weights",
                 o.save_weights,
                 "weights to write at the end: NAME.npy files in a folder, or one file")
      ->type_name("DIR|FILE.safetensors")
      ->group(kKeepingGroup);
  app.add_flag("--save-averages",
               o.save_averages,
               "write the averages of --average to the place of --save-weights, not the weights")
      ->group(kKeepingGroup);
  app.add_option("--load-weights", o.load_weights, "weights to start with, in the same form")
      ->type_name("DIR|FILE.safetensors")
      ->group(kKeepingGroup);
  app.add_option("--save-module",
                 o.save_module,
                 "module to write at the end, in the format of torch::save(module)")
      ->type_name("FILE")
      ->group(kKeepingGroup);
  app.add_option("--metrics",
                 o.metrics,
                 "folder for metrics.csv and TensorBoard event files, one row per step")
      ->type_name("DIR")
      ->group(kKeepingGroup);
  app.add_option(
         "--trace", o.trace, "timeline to write, for ui.perfetto.dev and `stagecraft trace`")
      ->type_name("FILE")
      ->group(kKeepingGroup);
}

void settle_keeping(KeepingOptions& o, const CLI::App& app) {
  settle_run_folder(o);
  if (o.save_every && !o.save_dir) {
    o.save_dir = o.resume;
  }
  for (auto* place :
       {&o.run_dir, &o.save_weights, &o.load_weights, &o.save_dir, &o.resume, &o.metrics}) {
    while (*place && (*place)->size() > 1 && (*place)->ends_with('/')) {
      (*place)->pop_back();  // both forms name the folder
    }
  }
  check_keeping(o, app);
}

}  // namespace stagecraft::tools
