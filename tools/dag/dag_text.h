/// dag_text prints a DAG for people: how many nodes of each kind there are, and for every rank list
/// its streams and the list that it issues.
#pragma once

#include <string>

#include "stagecraft/scheduler/dag/issue/issue.h"

namespace stagecraft::tools {

[[nodiscard]] std::string dag_text(const IssuedDag& issued);

}  // namespace stagecraft::tools
