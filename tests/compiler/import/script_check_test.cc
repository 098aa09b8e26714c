/// Tests TorchScript files that would write files, read memory or run while they are loaded: the
/// file is refused before any of it happens.
#include <algorithm>
#include <string>

#include <ATen/ops/ones.h>
#include <torch/csrc/jit/api/module.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using tests::read_text_file;
using tests::TemporaryFolder;

/// Returns the unsupported parts of a module with this code, one sentence after the other.
std::string faults_of_script(const TemporaryFolder& folder, const std::string& code) {
  const std::string path = folder.path() + "/model.pt";
  torch::jit::Module module("Made");
  module.register_parameter("w", at::ones({2}), false);
  module.define(code);
  module.save(path);
  std::string all;
  for (const Unsupported& u : load_model(path).unsupported) {
    all += to_string(u) + "\n";
  }
  return all;
}

TEST_CASE("a script that reaches files or memory is reported before it runs",
          "[compiler][import][hostile]") {
  const TemporaryFolder folder;
  const std::string victim = folder.write("victim", std::string(64, 'v'));
  const std::string name = "\"" + victim + "\"";
  CHECK(faults_of_script(folder, "def forward(self, x):\n  return x.relu().sum()\n").empty());
  CHECK_THAT(faults_of_script(folder,
                              "def forward(self, x):\n  y = torch.from_file(" + name +
                                  ", True, 16)\n  y.fill_(1)\n  return x.sum() + y.sum()\n"),
             ContainsSubstring("aten::from_file is not one that a file may call"));
  CHECK_THAT(
      faults_of_script(folder,
                       "def forward(self, x):\n  torch.save(x, " + name + ")\n  return x.sum()\n"),
      ContainsSubstring("aten::save is not one that a file may call"));
  // The operators are in a method that forward does not call, and in a branch that is not taken.
  CHECK_THAT(faults_of_script(folder,
                              "def other(self, x):\n  if x.size(0) == -1:\n    x.resize_([9])\n"
                              "  return x\ndef forward(self, x):\n  return x.sum()\n"),
             ContainsSubstring("aten::resize_ is not one"));
  CHECK(read_text_file(victim) == std::string(64, 'v'));
}

TEST_CASE("a script that would run while it is loaded is refused", "[compiler][import][hostile]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/model.pt";
  torch::jit::Module module("Made");
  module.define(
      "def __getstate__(self):\n  return 1\n"
      "def __setstate__(self, state: int):\n  return None\n"
      "def forward(self, x):\n  return x.sum()\n");
  module.save(path);
  CHECK_THAT(refusal([&] { (void)load_model(path); }, Errc::UsageFile),
             ContainsSubstring("defines __setstate__"));
}

}  // namespace
}  // namespace stagecraft
