#include "stagecraft/tools/import/import.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/ops/zeros.h>
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/cut/cut_file.h"
#include "stagecraft/compiler/data/open_data.h"
#include "stagecraft/compiler/import/describe_inputs.h"
#include "stagecraft/compiler/import/exported/exported_program.h"
#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/import/model_report.h"
#include "stagecraft/tools/program/cut_option.h"
#include "stagecraft/tools/program/program_costs.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kImportCommand = "stagecraft import";
constexpr std::int64_t kImportedSamples = 4;  // of a microbatch, if neither model nor data say it

struct ImportOptions {
  std::string model;
  std::optional<std::string> inputs, cut, cut_out, costs_out;
  std::optional<std::int64_t> stages;
  bool json = false;

  [[nodiscard]] bool cuts() const { return stages || cut || cut_out || costs_out; }
};

std::optional<std::string> parse(ImportOptions& o, const std::vector<std::string>& words) {
  CLI::App app(
      "Shows the contents of a model file of torch.export.save or torch.jit.save, the parts that "
      "are not supported, and the places where the model would be cut. See docs/models.md.",
      kImportCommand);
  app.add_option("MODEL", o.model, "model file")->required()->type_name("FILE");
  app.add_option("--inputs",
                 o.inputs,
                 "data as for `stagecraft train --data`: run the model on step 0; needed to cut a "
                 "TorchScript file")
      ->type_name("DIR");
  app.add_option("--stages", o.stages, "propose a cut into this many stages, by measured time")
      ->check(whole_number(1));
  app.add_option("--cut", o.cut, "measure this cut, e.g. layers.4,layers.8")
      ->type_name("PLACES|@FILE");
  app.add_option("--cut-out", o.cut_out, "write the cut, for --cut @FILE")->type_name("FILE");
  app.add_option("--costs-out", o.costs_out, "write the costs of operators and stages (costs.json)")
      ->type_name("FILE");
  app.add_flag("--json", o.json, "print one JSON object");
  app.footer(
      "Exit status: 0 success; 1 a part of the model is not supported; 2 wrong usage, or a file "
      "that cannot be used.\n"
      "Example: stagecraft import model.pt2 --stages 4 --cut-out model.cut");
  if (auto help = parse_command_line(app, words)) {
    return help;
  }
  if (o.stages && o.cut) {
    wrong_usage(kImportCommand,
                "--stages expects no --cut, which decides the number; leave one of the two out");
  }
  return std::nullopt;
}

/// The data on which the model runs.
struct Example {
  Batch batch;
  int microbatches = 1;
};

/// Returns zeros: valid tokens and labels for every vocabulary, and numeric masks that hide
/// nothing.
Example zeros_for(const ModelFile& model) {
  Example example;
  for (const ModelTensor& input : model.inputs) {
    const auto open = std::ranges::find(input.sizes, exported::kUnknownSize);
    if (!input.known || open != input.sizes.end()) {
      throw Error(
          Errc::UsageArgument,
          fmt::format("{} does not state the shape of its input {}; give data with --inputs "
                      "DIR, so that the model is run on their step 0",
                      model.path,
                      input.name));
    }
    std::vector<std::int64_t> sizes = input.sizes;
    if (sizes.empty()) {
      sizes = {1};  // MF-2
    }
    example.batch.emplace_back(at::zeros(sizes, at::TensorOptions().dtype(input.dtype)));
  }
  return example;
}

Example example_for(ModelFile& model, const ImportOptions& options) {
  if (!options.inputs) {
    return zeros_for(model);
  }
  const std::unique_ptr<ModelData> data = open_data(
      *options.inputs,
      {.inputs = model.inputs,
       .microbatch_size = stated_microbatch_size(model.inputs).value_or(kImportedSamples)});
  describe_inputs(model, *data);
  return {data->batch(0), data->microbatches()};
}

Cut cut_for(const ImportOptions& options) {
  if (auto cut = cut_option(options.cut)) {
    return *cut;
  }
  return options.stages ? Cut(Balanced{.stages = static_cast<int>(*options.stages)})
                        : Cut(AtMarkers{});
}

/// Runs the model to find what its file does not show, and cuts it.
void run_model(const ImportOptions& options, ModelFile& model, ModelReport& report) {
  const Example example = example_for(model, options);
  const Cut cut = cut_for(options);
  try {
    const Program program =
        compile(model, {.inputs = example.batch, .microbatches = example.microbatches, .cut = cut});
    report.ran = true;
    if (options.cuts()) {
      report.cut = program.cut();
    }
    if (options.cut_out) {
      report.cut_text = write_cut(program.cut());
    }
    if (options.costs_out) {
      report.costs_text = stagecraft::to_json(
          with_stages(operator_costs(program, example.batch, {}, /*threads=*/1), program));
    }
  } catch (const Error& error) {
    if (error.code() != Errc::CompileCapture) {
      throw;
    }
    model.unsupported.push_back(
        {.why =
             fmt::format("{}{}",
                         error.what(),
                         report.on_zeros ? " (run on zeros; --inputs DIR runs it on data)" : "")});
  }
}

}  // namespace

ExitCode import_model(const std::vector<std::string>& words, Console& console) {
  ImportOptions options;
  if (const auto help = parse(options, words)) {
    print(*help, console);
    return ExitCode::Good;
  }
  const SingleThreaded alone;
  ModelFile model = load_model(options.model);
  ModelReport report{.on_zeros = !options.inputs};
  if (model.unsupported.empty() && (options.inputs || options.cuts())) {
    run_model(options, model, report);
  }
  if (options.cut_out && report.cut) {
    write_output(*options.cut_out, report.cut_text, console);
  }
  if (options.costs_out && report.cut) {
    write_output(*options.costs_out, report.costs_text, console);
  }
  print(options.json ? to_json(model, report) : to_text(model, report), console);
  return model.unsupported.empty() ? ExitCode::Good : ExitCode::Failed;
}

}  // namespace stagecraft::tools
