/// Tests models from files: which files are models, and what compile makes of them.
#include "stagecraft/compiler/import/load_model.h"

#include <map>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/instance_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/evaluations.h"
#include "stagecraft/compiler/stage/probe.h"
#include "stagecraft/tests/compiler/import/made_archive.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::Json;
using testing::MadeArchive;
using testing::node;
using testing::small_archive;
using testing::tensor_argument;
using tests::TemporaryFolder;

TEST_CASE("a file that is no model is refused with its kind", "[compiler][import]") {
  const auto refused_file = [](const std::string& path) {
    return refusal([&] { (void)load_model(path); }, Errc::UsageFile);
  };
  CHECK_THAT(refused_file("/nowhere/model.pt2"), ContainsSubstring("expected a file, found none"));
  CHECK_THAT(refused_file("/"), ContainsSubstring("expected a file, found a folder"));
  const TemporaryFolder folder;
  CHECK_THAT(refused_file(folder.write("text.pt2", "not a model at all")),
             ContainsSubstring("expected a ZIP archive"));
  CHECK_THAT(refused_file(folder.write("empty.pt2", "")),
             ContainsSubstring("expected a ZIP archive"));
  MadeArchive other;
  other.records = {{"data.pkl", "x"}};
  std::string bytes = other.bytes();
  for (std::size_t at = 0; (at = bytes.find("models/model.json", at)) != std::string::npos;) {
    bytes.replace(at, 6, "modelx");
  }
  CHECK_THAT(refused_file(folder.write("weights.pt", bytes)),
             ContainsSubstring("found tensors alone"));
}

TEST_CASE("a made archive trains, counts its runs, and refuses other shapes",
          "[compiler][import]") {
  const ModelFile model = small_archive().read();
  CHECK(model.written_by == "torch 2.11.0");
  CHECK(model.mode == ModelMode::Either);
  CHECK(model.parameters.at(0).name == "fc.weight");
  CHECK(model.operators ==
        std::map<std::string, int>{{"aten::add_", 1}, {"aten::linear", 1}, {"aten::mse_loss", 1}});
  const at::Tensor x = at::arange(24, at::kFloat).view({8, 3}).div(24);
  const at::Tensor y = at::ones({8, 2});
  const Program program = compile(model, {.inputs = {x, y}, .microbatches = 2});
  CHECK(program.parameter_names() == std::vector<std::string>{"fc.weight", "fc.bias"});
  CHECK(model.buffers.at(0).tensor.item().toInt() == 0);
  CHECK_THAT(
      refusal(
          [&] {
            (void)compile(model, {.inputs = {x, y}, .microbatches = 4});
          },
          Errc::CompileShape),
      ContainsSubstring("input 0 (x) of one microbatch: the program was exported for float32 "
                        "of shape [4, 3], found float32 of shape [2, 3]"));
  CHECK_THAT(refusal([&] { (void)compile(model, {.inputs = {x}, .microbatches = 2}); }),
             ContainsSubstring("takes 2 inputs (x, y), CompileOptions::inputs has 1"));
}

/// Adds a node that makes `name`, of the form of `like`.
void add_node(MadeArchive& archive,
              const std::string& name,
              const std::string& target,
              const std::vector<std::pair<std::string, Json>>& inputs,
              const at::Tensor& like) {
  archive.value(name, like);
  archive.add(node(name, "torch.ops.aten." + target, inputs, {tensor_argument(name)}));
}

TEST_CASE("an evaluation uses running statistics, and those of the microbatch if a norm keeps none",
          "[compiler][import][evaluation]") {
  const at::Tensor x = at::rand({4, 3, 2});
  const at::Tensor mean = at::arange(3, at::kFloat);
  const at::Tensor var = at::ones({3}).mul(4);
  const Json none{{"as_none", true}};
  MadeArchive archive;
  archive.parameter("w", at::arange(1, 4, at::kFloat).requires_grad_(true));
  for (const std::string owner : {"batch_norm", "instance_norm"}) {
    archive.buffer(owner + ".mean", mean);
    archive.buffer(owner + ".var", var);
  }
  archive.user_input("x", x);
  const auto norm =
      [&](const std::string& name, const std::string& input, const std::string& kind, bool keeps) {
        const bool batch = kind == "batch_norm";
        add_node(archive,
                 name,
                 kind + ".default",
                 {{"input", tensor_argument(input)},
                  {"weight", tensor_argument("w")},
                  {"bias", none},
                  {"running_mean", keeps ? tensor_argument(kind + ".mean") : none},
                  {"running_var", keeps ? tensor_argument(kind + ".var") : none},
                  {batch ? "training" : "use_input_stats", {{"as_bool", true}}},
                  {"momentum", {{"as_float", 0.1}}},
                  {"eps", {{"as_float", 1e-5}}},
                  {"cudnn_enabled", {{"as_bool", true}}}},
                 x);
      };
  norm("plain", "x", "batch_norm", false);
  norm("counted", "plain", "batch_norm", true);
  norm("plain_instance", "counted", "instance_norm", false);
  norm("instance", "plain_instance", "instance_norm", true);
  add_node(archive, "loss", "mean.default", {{"self", tensor_argument("instance")}}, at::zeros({}));
  archive.output("loss");
  archive.output("instance");
  const Program program = compile(archive.read(), {.inputs = {x}, .microbatches = 1});
  const Program evaluation = program.evaluations()->prediction({x});
  Partition stages = evaluation.compiled().partition;
  const std::vector<StageRun> runs = run_stages(evaluation.compiled().graph, stages, {x}, {});

  const at::Tensor w = at::arange(1, 4, at::kFloat);
  at::Tensor expected = at::batch_norm(x, w, {}, {}, {}, true, 0.1, 1e-5, true);
  expected = at::batch_norm(expected, w, {}, mean, var, false, 0.1, 1e-5, true);
  expected = at::instance_norm(expected, w, {}, {}, {}, true, 0.1, 1e-5, true);
  expected = at::instance_norm(expected, w, {}, mean, var, false, 0.1, 1e-5, true);
  const std::vector<at::Tensor>& found = runs.at(0).result.outputs;
  REQUIRE(found.size() == 2);
  CHECK(std::ranges::any_of(found, [&](const at::Tensor& t) { return t.equal(expected); }));
}

/// Returns an archive whose sizes are fixed to 4 rows of 3, with the loss and one more output.
MadeArchive fixed_archive(const std::string& target, const Json& other, const at::Tensor& output) {
  MadeArchive archive;
  archive.parameter("w", at::arange(1, 9, at::kFloat).view({8, 1, 1}).requires_grad_(true));
  archive.user_input("x", at::zeros({4, 3}));
  add_node(archive, "output", target, {{"self", tensor_argument("x")}, {"other", other}}, output);
  add_node(archive,
           "mul",
           "mul.Tensor",
           {{"self", tensor_argument("x")}, {"other", tensor_argument("w")}},
           at::zeros({8, 4, 3}));
  add_node(archive, "loss", "mean.default", {{"self", tensor_argument("mul")}}, at::zeros({}));
  archive.output("loss");
  archive.output("output");
  return archive;
}

TEST_CASE("the rows of an output are found if a file fixes their number",
          "[compiler][import][evaluation]") {
  const at::Tensor x = at::arange(24, at::kFloat).view({8, 3}).div(24);
  const auto prediction = [&](const MadeArchive& archive) {
    const Program program = compile(archive.read(), {.inputs = {x}, .microbatches = 2});
    return program.evaluations()->prediction({x}).compiled().row_dimensions;
  };
  // Both 8 and 4 divide by the 4 rows. The rows are in dimension 1.
  CHECK(prediction(fixed_archive("mul.Tensor", tensor_argument("w"), at::zeros({8, 4, 3}))) ==
        std::vector<std::int64_t>{0, 1});
  // A table of every row with every row cannot be concatenated.
  MadeArchive table;
  table.parameter("w", at::ones({3}).requires_grad_(true));
  table.user_input("x", at::zeros({4, 3}));
  add_node(table, "t", "t.default", {{"self", tensor_argument("x")}}, at::zeros({3, 4}));
  add_node(table,
           "mm",
           "mm.default",
           {{"self", tensor_argument("x")}, {"mat2", tensor_argument("t")}},
           at::zeros({4, 4}));
  add_node(table,
           "mul",
           "mul.Tensor",
           {{"self", tensor_argument("x")}, {"other", tensor_argument("w")}},
           at::zeros({4, 3}));
  add_node(table, "loss", "mean.default", {{"self", tensor_argument("mul")}}, at::zeros({}));
  table.output("loss");
  table.output("mm");
  CHECK_THAT(
      refusal([&] { (void)prediction(table); }, Errc::CompileShape),
      ContainsSubstring("output 1 of the module has shape [4, 4] for a microbatch of 4 rows, "
                        "and no dimension follows the order of the rows"));
}

}  // namespace
}  // namespace stagecraft
