#include "stagecraft/compiler/import/describe_inputs.h"

#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/exported/exported_program.h"
#include "stagecraft/compiler/import/model_text.h"
#include "stagecraft/compiler/libtorch/type_text.h"

namespace stagecraft {
namespace {

bool fits(const ModelTensor& expected, const ArgumentHeader& found) {
  if (expected.dtype != found.dtype || expected.sizes.size() != found.sizes.size()) {
    return false;
  }
  for (std::size_t d = 0; d < expected.sizes.size(); ++d) {
    if (expected.sizes[d] != exported::kUnknownSize && expected.sizes[d] != found.sizes[d]) {
      return false;
    }
  }
  return true;
}

}  // namespace

void describe_inputs(ModelFile& model, const ModelData& data) {
  const std::vector<ArgumentHeader>& arguments = data.arguments();
  if (arguments.size() != model.inputs.size()) {
    throw Error(Errc::UsageFile,
                fmt::format("{}: expected {}, as {} takes them ({}), found {}",
                            data.folder(),
                            count_text(model.inputs.size(), "argument"),
                            model.path,
                            names_of(model.inputs),
                            arguments.size()));
  }
  std::string complaints;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    ModelTensor& input = model.inputs[i];
    if (input.known && !fits(input, arguments[i])) {
      complaints += fmt::format("\n  {}: expected {} {} for {}, found {} {}",
                                data.where(0, 0, i),
                                type_text(input.dtype),
                                shape_text(input.sizes),
                                input.name,
                                type_text(arguments[i].dtype),
                                shape_text(arguments[i].sizes));
    }
    input.known = true;
    input.dtype = arguments[i].dtype;
    input.sizes = arguments[i].sizes;
  }
  if (!complaints.empty()) {
    throw Error(Errc::UsageFile,
                fmt::format("{}: the data do not fit {}, which was written for other shapes or "
                            "types:{}",
                            data.folder(),
                            model.path,
                            complaints));
  }
}

}  // namespace stagecraft
