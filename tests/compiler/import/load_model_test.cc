/// Tests models from files: which files are models, and what compile makes of them.
#include "stagecraft/compiler/import/load_model.h"

#include <map>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/compiler/import/made_archive.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::MadeArchive;
using testing::small_archive;
using tests::TemporaryFolder;

TEST_CASE("a file that is no model is refused with its kind", "[compiler][import]") {
  const auto refused_file = [](const std::string& path) {
    return refusal([&] { (void)load_model(path); }, Errc::UsageFile);
  };
  CHECK_THAT(refused_file("/nowhere/model.pt2"), ContainsSubstring("No such file"));
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
  CHECK_THAT(refusal(
                 [&] {
                   (void)compile(model, {.inputs = {x, y}, .microbatches = 4});
                 },
                 Errc::CompileShape),
             ContainsSubstring("input 0 (x) of one microbatch: the program was exported for Float "
                               "of shape [4, 3], found Float of shape [2, 3]"));
  CHECK_THAT(refusal([&] { (void)compile(model, {.inputs = {x}, .microbatches = 2}); }),
             ContainsSubstring("takes 2 inputs (x, y), CompileOptions::inputs has 1"));
}

}  // namespace
}  // namespace stagecraft
