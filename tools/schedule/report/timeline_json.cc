#include "stagecraft/tools/schedule/report/timeline_json.h"

#include <string_view>

#include "stagecraft/tools/common/number_text.h"
#include "stagecraft/tools/schedule/report/largest_bubbles.h"

namespace stagecraft::tools {

using Json = nlohmann::ordered_json;

namespace {

/// Returns the name of the cause; that of transfers as in the "causes" of a row.
std::string_view cause_key(BubbleCause cause) {
  return cause == BubbleCause::Transfer ? "communication" : name(cause);
}

}  // namespace

Json causes_json(const Timeline& timeline) {
  Json list = Json::array();
  for (const RowTimeline& row : timeline.rows) {
    list.push_back({{"warm_up", number_json(row.bubbles.warm_up)},
                    {"dependency", number_json(row.bubbles.dependency)},
                    {"communication", number_json(row.bubbles.transfer)},
                    {"drain", number_json(row.bubbles.drain)}});
  }
  return list;
}

Json bubbles_json(const Timeline& timeline) {
  Json list = Json::array();
  for (const Bubble& bubble : largest_bubbles(timeline)) {
    Json json{{"row", bubble.row},
              {"start", number_json(bubble.start)},
              {"end", number_json(bubble.end)},
              {"cause", cause_key(bubble.cause)}};
    if (bubble.next != nullptr) {
      json["before"] = to_string(*bubble.next->cell);
      if (bubble.next->waited_for) {
        json["waited_for"] = to_string(*bubble.next->waited_for);
      }
    }
    list.push_back(std::move(json));
  }
  return list;
}

Json path_json(const Timeline& timeline) {
  Json list = Json::array();
  for (const Task& task : timeline.critical_path) {
    list.push_back(to_string(task));
  }
  return list;
}

}  // namespace stagecraft::tools
