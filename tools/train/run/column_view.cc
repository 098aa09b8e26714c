#include "stagecraft/tools/train/run/column_view.h"

#include <istream>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace stagecraft::tools {
namespace {

nlohmann::ordered_json json_of(const DispatchedColumn& column) {
  nlohmann::ordered_json object{{"event", "column"},
                                {"column", column.number},
                                {"columns", column.columns},
                                {"tasks", nlohmann::ordered_json::array()}};
  for (const DispatchedTask& task : column.tasks) {
    nlohmann::ordered_json values = nlohmann::ordered_json::array();
    for (const DispatchedValue& value : task.values) {
      values.push_back(
          {{"gradient", value.gradient}, {"sizes", value.sizes}, {"norm", value.norm}});
    }
    object["tasks"].push_back(
        {{"rank", task.rank.value}, {"task", to_string(task.task)}, {"values", std::move(values)}});
  }
  return object;
}

}  // namespace

std::function<void(const DispatchedColumn&)> column_view(Progress& progress, std::istream& in) {
  return [&progress, &in](const DispatchedColumn& column) {
    progress.report(to_string(column), json_of(column));
    std::string line;
    std::getline(in, line);
  };
}

}  // namespace stagecraft::tools
