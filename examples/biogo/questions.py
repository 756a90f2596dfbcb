"""The questions of the BioGO sample. Each is a function whose docstring is the question and which finds the answer.

    python -m examples.biogo.questions EXPORT > examples/biogo/queries.jsonl

writes the questions file from an exported graph. What is true is what the graph says. "Takes part in", "involved in"
and "of any kind" count a term and everything below it by is_a or part_of; "directly" means the term itself.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .graph import Graph, Ids, most

MITOPHAGY = "autophagy of mitochondrion"  # of which mitophagy is a synonym; the term called mitophagy is one form of it


def taking_part(g: Graph, process: str) -> Ids:
    """Genes that take part in a process or anything below it."""
    return g.of("involved_in", g.below(g.named(process, "biological_process")))


def enabling(g: Graph, function: str) -> Ids:
    """Genes whose product has a molecular function of this kind."""
    return g.of("enables", g.below(g.named(function, "molecular_function")))


def located(g: Graph, component: str) -> Ids:
    """Genes whose product is found in a cellular component or anything below it."""
    return g.of("located_in", g.below(g.named(component, "cellular_component")))


def on(g: Graph, *chromosomes: str) -> Ids:
    """Genes on any of these chromosomes."""
    return g.of("on_chromosome", {g.named(f"chromosome {name}") for name in chromosomes})


def chromosomes_with(g: Graph, genes: Ids, least: int) -> Ids:
    """Chromosomes that carry at least so many of `genes`."""
    return {found for found in g.of_type("chromosome") if len(g.of("on_chromosome", found) & genes) >= least}


def regulating(g: Graph, relation: str, process: str) -> Ids:
    """Genes that take part in the processes which regulate `process` in this way, or in anything below these."""
    regulators = g.of(relation, g.named(process, "biological_process"))
    return g.of("involved_in", set().union(*map(g.below, regulators)))


def shared(g: Graph, relation: str, *genes: str) -> Ids:
    """Where `relation` leads from all of these genes."""
    return set.intersection(*(g.to(relation, g.named(name, "gene")) for name in genes))


def mismatch_repair_on_2(g: Graph) -> Ids:
    """Which genes on chromosome 2 take part in DNA mismatch repair (or any more specific form of it)?"""
    return taking_part(g, "mismatch repair") & on(g, "2")


def coagulation_on_x(g: Graph) -> Ids:
    """Which blood-coagulation genes are encoded on the X chromosome?"""
    return taking_part(g, "blood coagulation") & on(g, "X")


def two_repairs(g: Graph) -> Ids:
    """Which genes take part both in mismatch repair and in base-excision repair, counting their sub-processes?"""
    return taking_part(g, "mismatch repair") & taking_part(g, "base-excision repair")


def glucokinases(g: Graph) -> Ids:
    """Which glycolysis genes enable glucokinase activity but do not lie on chromosome 7?"""
    return taking_part(g, "glycolytic process") & enabling(g, "glucokinase activity") - on(g, "7")


def mitophagy_ubiquitin(g: Graph) -> Ids:
    """Mitophagy genes whose product has ubiquitin-protein transferase activity of any kind"""
    return taking_part(g, MITOPHAGY) & enabling(g, "ubiquitin-protein transferase activity")


def seeing_with_calcium(g: Graph) -> Ids:
    """Which genes that bind calcium ions are involved in visual perception?"""
    return enabling(g, "calcium ion binding") & taking_part(g, "visual perception")


def seeing_receptors(g: Graph) -> Ids:
    """Which genes involved in visual perception are G protein-coupled receptors, and lie on chromosome 7 or X?"""
    return taking_part(g, "visual perception") & enabling(g, "G protein-coupled receptor activity") & on(g, "7", "X")


def mismatch_repair_chromosomes(g: Graph) -> Ids:
    """Which chromosomes carry at least three genes involved in mismatch repair?"""
    return chromosomes_with(g, taking_part(g, "mismatch repair"), 3)


def mitochondrial_glycosylases(g: Graph) -> Ids:
    """Which DNA-glycosylase genes work in base-excision repair and are found in the mitochondrion?"""
    genes = enabling(g, "DNA N-glycosylase activity") & taking_part(g, "base-excision repair")
    return genes & located(g, "mitochondrion")


def coagulation_proteases(g: Graph) -> Ids:
    """Which coagulation genes enable serine-type endopeptidase activity and lie on chromosome 13?"""
    return taking_part(g, "blood coagulation") & enabling(g, "serine-type endopeptidase activity") & on(g, "13")


def coagulation_in_two_lumens(g: Graph) -> Ids:
    """Which blood coagulation genes are located in the platelet alpha granule lumen and in the endoplasmic reticulum
    lumen?"""
    lumens = located(g, "platelet alpha granule lumen") & located(g, "endoplasmic reticulum lumen")
    return taking_part(g, "blood coagulation") & lumens


def circadian_factors(g: Graph) -> Ids:
    """Which circadian-rhythm genes have DNA-binding transcription factor activity (of any kind)?"""
    return taking_part(g, "circadian rhythm") & enabling(g, "DNA-binding transcription factor activity")


def mitophagy_and_bone(g: Graph) -> Ids:
    """Which chromosomes carry a mitophagy gene and also a bone-mineralization gene?"""
    genes = taking_part(g, MITOPHAGY), taking_part(g, "bone mineralization")
    return g.to("on_chromosome", genes[0]) & g.to("on_chromosome", genes[1])


def fibrinogen_functions(g: Graph) -> Ids:
    """Which molecular functions are shared by all three of FGA, FGB and FGG?"""
    return shared(g, "enables", "FGA", "FGB", "FGG")


def pink1_and_prkn(g: Graph) -> Ids:
    """Which processes does PINK1 share with PRKN?"""
    return shared(g, "involved_in", "PINK1", "PRKN")


def coagulation_chromosome(g: Graph) -> Ids:
    """Which chromosome carries the most genes involved in blood coagulation?"""
    genes = taking_part(g, "blood coagulation")
    return most(g.of_type("chromosome"), lambda found: len(g.of("on_chromosome", found) & genes))


def crowded_bands(g: Graph) -> Ids:
    """In which cytobands does this graph place five genes or more?"""
    return {band for band in g.of_type("cytoband") if len(g.of("at_cytoband", band)) >= 5}


def mitophagy_elsewhere(g: Graph) -> Ids:
    """For which genes that take part in the autophagy of mitochondria is no location recorded in the mitochondrion or
    any part of it?"""
    return taking_part(g, MITOPHAGY) - located(g, "mitochondrion")


def bitter_outside_clusters(g: Graph) -> Ids:
    """Bitter taste receptor genes crowd in two cytobands, 12p13.2 and 7q34. Which ones lie outside both?"""
    clusters = {g.named("12p13.2", "cytoband"), g.named("7q34", "cytoband")}
    return enabling(g, "bitter taste receptor activity") - g.of("at_cytoband", clusters)


def doubly_mapped(g: Graph) -> Ids:
    """Exactly one gene is assigned to two cytobands at once. Which two cytobands are these?"""
    (bands,) = (bands for gene in g.of_type("gene") if len(bands := g.to("at_cytoband", gene)) > 1)
    return bands


def both_ways(g: Graph) -> Ids:
    """Which genes are involved in the positive as well as in the negative regulation of blood coagulation?"""
    ways = (f"{way}_regulates" for way in ("positively", "negatively"))
    return set.intersection(*(regulating(g, way, "blood coagulation") for way in ways))


def brakes_of_their_own(g: Graph) -> Ids:
    """Which genes take part in fibrinolysis and are also involved in its negative regulation?"""
    return taking_part(g, "fibrinolysis") & regulating(g, "negatively_regulates", "fibrinolysis")


def most_functions(g: Graph) -> Ids:
    """Which gene is directly annotated with the largest number of different molecular functions?"""
    return most(g.of_type("gene"), lambda gene: len(g.to("enables", gene)))


def common_repair_function(g: Graph) -> Ids:
    """Leaving plain protein binding aside, which molecular function is directly annotated to the largest number of
    mismatch-repair genes?"""
    genes = taking_part(g, "mismatch repair")
    functions = g.to("enables", genes) - {g.named("protein binding")}
    return most(functions, lambda function: len(g.of("enables", function) & genes))


def granule_by_assay(g: Graph) -> Ids:
    """For which genes does a direct assay (evidence code IDA) place the product in the platelet alpha granule or a part
    of it?"""
    parts = g.below(g.named("platelet alpha granule"))
    return {
        gene for part in parts for gene in g.of("located_in", part) if "IDA" in g.evidence("located_in", gene, part)
    }


def glycosylases_by_another_name(g: Graph) -> Ids:
    """Which genes have a DNA N-glycosylase activity of any kind although the word glycosylase is not part of their full
    name?"""
    return {
        gene for gene in enabling(g, "DNA N-glycosylase activity") if "glycosylase" not in g.text(gene, "full_name")
    }


def clock_neighbour(g: Graph) -> Ids:
    """Which circadian-rhythm gene, other than CLOCK, lies on the same chromosome as CLOCK?"""
    clock = g.named("CLOCK", "gene")
    return taking_part(g, "circadian rhythm") & g.of("on_chromosome", g.to("on_chromosome", clock)) - {clock}


def glycolysis_places(g: Graph) -> Ids:
    """Which cellular components are each the directly recorded location of at least four glycolysis genes?"""
    places = Counter(place for gene in taking_part(g, "glycolytic process") for place in g.to("located_in", gene))
    return {place for place, count in places.items() if count >= 4}


def haemophilia_b_functions(g: Graph) -> Ids:
    """Which molecular functions are directly recorded for the gene that is also known as HEMB?"""
    (gene,) = (gene for gene in g.of_type("gene") if "HEMB" in g.nodes[gene]["attributes"]["aliases"])
    return g.to("enables", gene)


def without_three_topics(g: Graph) -> Ids:
    """Which chromosomes carry no gene for the autophagy of mitochondria, none for bone mineralization and none for
    glycolysis?"""
    topics = (MITOPHAGY, "bone mineralization", "glycolytic process")
    return g.of_type("chromosome") - g.to("on_chromosome", set().union(*map(partial(taking_part, g), topics)))


def photoreceptor_places(g: Graph) -> Ids:
    """In which cellular components whose definition speaks of a photoreceptor is the product of a visual-perception
    gene found?"""
    places = g.to("located_in", taking_part(g, "visual perception"))
    return {place for place in places if "photoreceptor" in g.text(place, "definition").lower()}


def parent_of_repairs(g: Graph) -> Ids:
    """Of which process are base-excision repair and mismatch repair both a direct kind?"""
    return g.to("is_a", g.named("base-excision repair")) & g.to("is_a", g.named("mismatch repair"))


def taste_on_1p(g: Graph) -> Ids:
    """Which taste receptor genes of any kind lie on the short arm of chromosome 1?"""
    arm = {band for band in g.of_type("cytoband") if g.name(band).startswith("1p")}
    return enabling(g, "taste receptor activity") & g.of("at_cytoband", arm)


def autophagy_promoters(g: Graph) -> Ids:
    """Which chromosomes carry a gene that is involved in the positive regulation of autophagy and whose product is
    found in the mitochondrion or a part of it?"""
    return g.to("on_chromosome", regulating(g, "positively_regulates", "autophagy") & located(g, "mitochondrion"))


def lonely_repairers(g: Graph) -> Ids:
    """Which mismatch-repair genes have their chromosome to themselves, with no other mismatch-repair gene on it?"""
    genes = taking_part(g, "mismatch repair")
    return {gene for gene in genes if len(g.of("on_chromosome", g.to("on_chromosome", gene)) & genes) == 1}


def clock_and_partner(g: Graph) -> Ids:
    """To which processes are CLOCK and BMAL1 both directly annotated, but PER1 is not?"""
    return shared(g, "involved_in", "CLOCK", "BMAL1") - g.to("involved_in", g.named("PER1", "gene"))


def named_factors(g: Graph) -> Ids:
    """Which coagulation genes on chromosome 13 or X have the word factor in their full name?"""
    genes = taking_part(g, "blood coagulation") & on(g, "13", "X")
    return {gene for gene in genes if "factor" in g.text(gene, "full_name").split()}


def kinases_out_of_mitochondria(g: Graph) -> Ids:
    """Which glycolysis genes with kinase activity of any kind have no recorded location in the mitochondrion or any
    part of it?"""
    return taking_part(g, "glycolytic process") & enabling(g, "kinase activity") - located(g, "mitochondrion")


def sight_and_clotting(g: Graph) -> Ids:
    """Which cytobands hold a gene for visual perception and also a gene for blood coagulation?"""
    topics = ("visual perception", "blood coagulation")
    return set.intersection(*(g.to("at_cytoband", taking_part(g, topic)) for topic in topics))


def most_places(g: Graph) -> Ids:
    """Which gene that takes part in the autophagy of mitochondria is directly annotated with the largest number of
    cellular components?"""
    return most(taking_part(g, MITOPHAGY), lambda gene: len(g.to("located_in", gene)))


def neighbours_of_bone_genes(g: Graph) -> Ids:
    """Which genes share a cytoband with a bone-mineralization gene without being involved in bone mineralization
    themselves?"""
    genes = taking_part(g, "bone mineralization")
    return g.of("at_cytoband", g.to("at_cytoband", genes)) - genes


def salty_and_sour(g: Graph) -> Ids:
    """Which genes with ion channel activity of any kind are involved in the sensory perception of taste?"""
    return enabling(g, "ion channel activity") & taking_part(g, "sensory perception of taste")


def clotting_enzymes_not_outside(g: Graph) -> Ids:
    """Which coagulation genes encode an endopeptidase of any kind for which the extracellular space, parts included, is
    not a recorded location?"""
    genes = taking_part(g, "blood coagulation") & enabling(g, "endopeptidase activity")
    return genes - located(g, "extracellular space")


class Question(NamedTuple):
    """A question's id, its split, how many steps its answer takes, and its program."""

    id: str
    split: str
    hops: int
    program: Callable[[Graph], Ids]


QUESTIONS = (
    Question("bio01", "test", 3, mismatch_repair_on_2),
    Question("bio02", "test", 3, coagulation_on_x),
    Question("bio03", "test", 3, two_repairs),
    Question("bio04", "test", 3, glucokinases),
    Question("bio05", "test", 3, mitophagy_ubiquitin),
    Question("bio06", "test", 3, seeing_with_calcium),
    Question("bio07", "test", 4, seeing_receptors),
    Question("bio08", "test", 3, mismatch_repair_chromosomes),
    Question("bio09", "test", 4, mitochondrial_glycosylases),
    Question("bio10", "test", 4, coagulation_proteases),
    Question("bio11", "test", 3, coagulation_in_two_lumens),
    Question("bio12", "test", 3, circadian_factors),
    Question("bio13", "test", 4, mitophagy_and_bone),
    Question("bio14", "test", 2, fibrinogen_functions),
    Question("bio15", "test", 2, pink1_and_prkn),
    Question("bio16", "test", 3, coagulation_chromosome),
    Question("bio17", "train", 1, crowded_bands),
    Question("bio18", "test", 3, mitophagy_elsewhere),
    Question("bio19", "train", 2, bitter_outside_clusters),
    Question("bio20", "val", 1, doubly_mapped),
    Question("bio21", "test", 4, both_ways),
    Question("bio22", "test", 3, brakes_of_their_own),
    Question("bio23", "train", 1, most_functions),
    Question("bio24", "val", 3, common_repair_function),
    Question("bio25", "test", 2, granule_by_assay),
    Question("bio26", "test", 2, glycosylases_by_another_name),
    Question("bio27", "val", 4, clock_neighbour),
    Question("bio28", "test", 3, glycolysis_places),
    Question("bio29", "val", 1, haemophilia_b_functions),
    Question("bio30", "train", 3, without_three_topics),
    Question("bio31", "test", 3, photoreceptor_places),
    Question("bio32", "train", 2, parent_of_repairs),
    Question("bio33", "val", 2, taste_on_1p),
    Question("bio34", "test", 5, autophagy_promoters),
    Question("bio35", "test", 4, lonely_repairers),
    Question("bio36", "train", 3, clock_and_partner),
    Question("bio37", "test", 3, named_factors),
    Question("bio38", "train", 4, kinases_out_of_mitochondria),
    Question("bio39", "val", 4, sight_and_clotting),
    Question("bio40", "train", 3, most_places),
    Question("bio41", "test", 4, neighbours_of_bone_genes),
    Question("bio42", "val", 3, salty_and_sour),
    Question("bio43", "test", 4, clotting_enzymes_not_outside),
)


def rows(g: Graph) -> list[dict[str, object]]:
    """The rows of the questions file."""
    return [
        {
            "id": question.id,
            "query": " ".join((question.program.__doc__ or "").split()),
            "answer_ids": sorted(map(g.source_id, question.program(g))),
            "split": question.split,
            "hops": question.hops,
        }
        for question in QUESTIONS
    ]


if __name__ == "__main__":
    for row in rows(Graph(Path(sys.argv[1]) / "files")):
        sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
