#include <CLI/CLI.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/word_choice.h"
#include "stagecraft/tools/train/options/groups.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kPipelineGroup = "Pipeline (docs/schedules.md)";

void add_schedule(CLI::App& app, PipelineOptions& o) {
  app.add_option(
         "--schedule", o.schedule, "name from `stagecraft schedule list`, or a schedule file")
      ->type_name("NAME|FILE")
      ->group(kPipelineGroup);
  app.add_option_function<std::vector<std::string>>(
         "--set",
         [&o](const std::vector<std::string>& words) {
           o.set = key_values(kTrainCommand, "--set", words);
         },
         "parameter of the named schedule, e.g. k=2; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kPipelineGroup);
  app.add_option(
         "--strategy", o.strategy, "file of a strategy, instead of a schedule: docs/strategies.md")
      ->type_name("FILE")
      ->excludes("--schedule")
      ->excludes("--set")
      ->group(kPipelineGroup);
  app.add_option("--strategy-out", o.strategy_out, "write the strategy of this run, for --strategy")
      ->type_name("FILE")
      ->group(kPipelineGroup);
  app.add_option("--dp",
                 o.dp,
                 "copies of the whole pipeline, each on its own ranks and samples; they sum their "
                 "gradients")
      ->check(whole_number(1, kMaxRanks))
      ->excludes("--strategy")
      ->type_name("N")
      ->group(kPipelineGroup);
  app.add_option("--ep",
                 o.ep,
                 "copies of the pipeline that divide the experts of the model (its regions EP) and "
                 "exchange their tokens; divides --dp [without --dp: all copies]")
      ->check(whole_number(1, kMaxRanks))
      ->excludes("--strategy")
      ->type_name("N")
      ->group(kPipelineGroup);
  app.add_option(
         "--zero",
         o.zero,
         "1: copies share the optimizer's state, each has a part of it (ZeRO-1); weights get the "
         "same bits. 2: gradients too, which are summed after each task (ZeRO-2). 3: weights too, "
         "which are gathered for each task (ZeRO-3)")
      ->check(whole_number(0, 3))
      ->excludes("--strategy")
      ->type_name("LEVEL")
      ->group(kPipelineGroup);
  app.add_option("--bucket-size",
                 o.bucket_bytes,
                 "most bytes of gradients in one sum over copies, e.g. 8M [25M from --zero 2 on, "
                 "else a stage]")
      ->transform(byte_number())
      ->excludes("--strategy")
      ->type_name("BYTES")
      ->group(kPipelineGroup);
  app.add_option("--ranks",
                 o.ranks,
                 "number of ranks: rows of the schedule times copies of the pipeline [4, the "
                 "places of the launched hosts, or the number of the file]")
      ->check(whole_number(1))
      ->group(kPipelineGroup);
  app.add_option("--usual-ranks", o.usual_ranks)
      ->check(whole_number(1))
      ->envname("STAGECRAFT_RANKS")
      ->group("");
  app.add_option("--stages",
                 o.stages,
                 "number of stages of the model [derived from the schedule and the ranks]")
      ->check(whole_number(1))
      ->group(kPipelineGroup);
  app.add_option("--chunks", o.chunks, "stages per rank, if the schedule leaves that open")
      ->check(whole_number(1))
      ->excludes("--strategy")
      ->group(kPipelineGroup);
  app.add_option(
         "--microbatches",
         o.microbatches,
         "microbatches per batch, for each copy of the pipeline [8, or the number of the file or "
         "of the folder]")
      ->check(whole_number(1))
      ->group(kPipelineGroup);
  app.add_option("--microbatch-size",
                 o.microbatch_size,
                 "sequences, images or samples per microbatch [4, or the number of the file of a "
                 "planned cut or of the model's file]")
      ->check(whole_number(1))
      ->group(kPipelineGroup);
}

void add_cut(CLI::App& app, PipelineOptions& o) {
  app.add_option(
         "--cut",
         o.cut,
         "places where stages begin, e.g. layers.4,layers.8 [the model's markers; a model from a "
         "file is balanced by time]")
      ->type_name("PLACES|@FILE")
      ->group(kPipelineGroup);
  app.add_option("--cut-out", o.cut_out, "write the cut, for --cut @FILE")
      ->type_name("FILE")
      ->group(kPipelineGroup);
  app.add_option("--graph", o.graph, "check the edges between the model's stages, e.g. 0-2,1-2")
      ->type_name("EDGES|@FILE")
      ->group(kPipelineGroup);
}

}  // namespace

void add_pipeline(CLI::App& app, PipelineOptions& o) {
  add_schedule(app, o);
  add_cut(app, o);
  app.add_option_function<std::string>(
         "--recompute",
         [&o](const std::string& text) {
           try {
             o.recompute = parse_recompute(text);
           } catch (const Error& error) {
             wrong_usage(kTrainCommand, "--recompute: " + error.message());
           }
         },
         "run the forward of these stages, regions or parameter paths again before their backward, "
         "and keep only their inputs until then")
      ->type_name("none|stage|NAME,...")
      ->default_str("none")
      ->group(kPipelineGroup);
  add_choice<Precision>(
      app,
      "--precision",
      o.precision,
      precision_words(),
      "bf16, fp16: compute in bfloat16 or float16 where that is safe (autocast); weights and "
      "optimizer stay float32; with fp16 losses are scaled")
      ->group(kPipelineGroup);
  add_choice<Dispatch>(app,
                       "--dispatch",
                       o.dispatch,
                       {{"plan", Dispatch::Plan}, {"task", Dispatch::PerTask}},
                       "plan: each rank follows its list; task: the driver releases the tasks of "
                       "one column of the schedule after the other, for comparisons")
      ->group(kPipelineGroup);
}

}  // namespace stagecraft::tools
