#include "report/table_html.h"

#include <fmt/format.h>

#include "report/html.h"

namespace gradflow {

std::string key_html(const ReportGroup& group) {
  return fmt::format(R"html(<span class="key{}" style="--c:var(--s{})"></span>{})html",
                     group.ink.dashed ? " dashed" : "", group.ink.slot, escaped_html(group.label));
}

}  // namespace gradflow
