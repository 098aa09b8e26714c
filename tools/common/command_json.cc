#include "stagecraft/tools/common/command_json.h"

#include <nlohmann/json.hpp>

namespace stagecraft::tools {
namespace {

using OrderedObject = nlohmann::ordered_json;

constexpr int kJsonVersion = 1;

}  // namespace

std::string command_json(std::string_view command, const nlohmann::ordered_json& contents) {
  OrderedObject object{{"stagecraft", command}, {"version", kJsonVersion}};
  object.update(contents);
  return object.dump(-1, ' ', false, OrderedObject::error_handler_t::replace) + '\n';
}

}  // namespace stagecraft::tools
