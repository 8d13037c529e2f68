/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Findings: what stands out in a job, in words, with the numbers that show it and the setting to
 * look at. Pure but for the memory of the texts. */
#ifndef TRUNKLINE_REPORT_RULES_H
#define TRUNKLINE_REPORT_RULES_H

#include "contrib/report/model.h"

enum { finding_evidence_max = 6 };

enum finding_weight { FINDING_NOTE, FINDING_WARNING, FINDING_ERROR };

struct finding {
    const char *rule, *setting; /* "": no setting helps */
    enum finding_weight weight;
    char sentence[400];
    struct {
        char what[80], value[160];
    } evidence[finding_evidence_max];
    unsigned evidence_count;
};

struct findings {
    struct finding *list;
    size_t count;
};

/* The names of the rules, in the order of the report. */
extern const unsigned finding_rule_count;
const char *finding_rule_name(unsigned rule);

/* The most serious first. False: no memory. */
bool findings_of(const struct report_model *model, struct findings *findings);
void findings_free(struct findings *findings);

#endif
