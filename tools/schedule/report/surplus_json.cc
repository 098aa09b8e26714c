#include "stagecraft/tools/schedule/report/surplus_json.h"

#include <string>

namespace stagecraft::tools {

nlohmann::ordered_json surplus_json(const std::vector<Surplus>& surplus) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Surplus& s : surplus) {
    list.push_back(
        {{"stage", s.stage.value}, {"kind", std::string(1, letter(s.kind))}, {"tasks", s.tasks}});
  }
  return list;
}

}  // namespace stagecraft::tools
